"""Shared fixtures: the process is given back after each test, and the default runs are evaluated once."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

import experiment
import resume_audit

if TYPE_CHECKING:
    from collections.abc import Iterator

# No deadline: a slow machine is not a failure. The same examples each time: a red test stays red until it is mended.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("suite")

# A script's background job ignores Ctrl-C, and so would the programs that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _process_as_found() -> Iterator[None]:
    """Give back generators, threads and settings after each test, so that the order of tests does not matter."""
    with experiment.isolated_state():  # not the lock: a test may start threads that want it
        yield


@pytest.fixture(scope="session")
def servers() -> Iterator[None]:
    """Keep the audit's servers for as long as the tests run: torch is imported twice, not for every test."""
    with resume_audit.keep_servers():
        yield


@pytest.fixture(scope="session")
def cfg() -> experiment.ExperimentConfig:
    """The default configuration."""
    return experiment.ExperimentConfig()


@pytest.fixture(scope="session")
def results() -> dict[tuple[int, str], dict[str, Any]]:
    """The results of all 35 default combinations, by seed and scenario."""
    return {
        (seed, result["scenario"]): result
        for seed in experiment.SEEDS
        for result in experiment.evaluate_seed(seed, experiment.SCENARIOS, experiment.ExperimentConfig())
    }


@pytest.fixture(scope="session")
def reference() -> dict[int, dict[str, Any]]:
    """Seed 11's uninterrupted training: a snapshot after each number of updates."""
    return experiment.make_uninterrupted_reference(11, experiment.ExperimentConfig())
