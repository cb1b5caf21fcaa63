"""What a host program keeps of itself when it calls the experiment, and what it cannot do to the results."""

import contextlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import experiment

ROOT = Path(__file__).resolve().parent.parent
Action = Callable[[Path], object]
Result = dict[str, Any]

ENTRY_POINTS: dict[str, Action] = {
    "evaluate_scenario": lambda _: experiment.evaluate_scenario(11, "omit_scheduler"),
    "run_experiment": lambda directory: experiment.run_experiment(directory, [11], ["omit_rng"]),
    "runtime_environment": lambda _: experiment.runtime_environment(),
    "print_fixture_inspection": lambda _: experiment.print_fixture_inspection(11),
    "print_seed_matrix": lambda _: experiment.print_seed_matrix(11),
    "print_scenario_trace": lambda _: experiment.print_scenario_trace(11, "full_mid_accumulation"),
}


def process_state() -> dict[str, Any]:
    """Return all that a host program may have set, in a form that compares exactly."""
    return {
        "python generator": random.getstate(),
        "numpy generator": repr(np.random.get_state(legacy=False)),
        "torch generator": torch.get_rng_state().tolist(),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warn only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "gradients": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "numpy errors": np.geterr(),
        "environment variables": dict(os.environ),
        "working directory": Path.cwd(),
    }


@contextlib.contextmanager
def set_up(*, deterministic: bool, warn_only: bool, threads: int) -> Iterator[None]:
    """Set everything to what the experiment itself would not choose, generators in the middle of a pair included."""
    random.seed(5)
    random.gauss(0, 1)  # leaves the second of a pair for the next call
    np.random.seed(6)
    np.random.standard_normal(3)  # likewise
    torch.default_generator.manual_seed(7)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_default_dtype(torch.float32)  # all else is given back after every test


@pytest.mark.parametrize("name", ENTRY_POINTS)
@pytest.mark.parametrize(
    ("deterministic", "warn_only", "threads"), [(False, False, 2), (True, True, 3)], ids=["free", "warn-only"]
)
def test_process_is_left_as_found(
    name: str, deterministic: bool, warn_only: bool, threads: int, tmp_path: Path
) -> None:
    """Generators, threads, determinism, gradient mode, default dtype and all else are after a call as before it."""
    with set_up(deterministic=deterministic, warn_only=warn_only, threads=threads):
        before = process_state()

        ENTRY_POINTS[name](tmp_path)

        assert process_state() == before


FAILURES: dict[str, tuple[Action, type[Exception]]] = {
    "evaluate_scenario": (
        lambda _: experiment.evaluate_scenario(11, "omit_rng", experiment.ExperimentConfig(learning_rate=1e38)),
        experiment.TrainingDivergedError,
    ),
    "run_experiment": (
        lambda directory: experiment.run_experiment(
            directory, [11], ["omit_rng"], experiment.ExperimentConfig(learning_rate=1e38)
        ),
        experiment.TrainingDivergedError,
    ),
    "run_experiment-refused": (lambda _: experiment.run_experiment("/dev/null"), experiment.OutputError),
    "print_seed_matrix": (lambda _: experiment.print_seed_matrix(-1), ValueError),
}


@pytest.mark.parametrize("name", FAILURES)
def test_process_is_left_as_found_by_a_failure(name: str, tmp_path: Path) -> None:
    """A call that raises gives the process back, too."""
    action, error = FAILURES[name]
    with set_up(deterministic=True, warn_only=True, threads=2):
        before = process_state()

        with pytest.raises(error):
            action(tmp_path)

        assert process_state() == before


def test_process_is_left_as_found_by_failed_checks(
    results: dict[tuple[int, str], Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run whose acceptance checks fail gives the process back, too."""

    def evaluate_seed(seed: int, *args: object) -> Iterator[Result]:
        experiment.make_job(seed)
        yield results[seed, "full_boundary"] | {"scenario": "omit_rng"}

    monkeypatch.setattr(experiment, "evaluate_seed", evaluate_seed)
    with set_up(deterministic=False, warn_only=False, threads=2):
        before = process_state()

        with pytest.raises(experiment.AcceptanceError):
            experiment.run_experiment(tmp_path, [11], ["omit_rng"])

        assert process_state() == before


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Make a dtype the default for a while."""
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def settings(threads: int, seed: int) -> Iterator[None]:
    """Set thread count and seeds; they are given back after every test."""
    torch.set_num_threads(threads)
    experiment.seed_all(seed)
    yield


SURROUNDINGS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "no-gradients": torch.no_grad,
    "inference-mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "double-precision": lambda: default_dtype(torch.float64),
    "half-precision": lambda: default_dtype(torch.bfloat16),
    "another-device": lambda: torch.device("meta"),
    "two-threads": lambda: settings(2, 0),
    "other-seeds": lambda: settings(1, 12345),
    "numpy-raises": lambda: np.errstate(all="raise"),
}


@pytest.mark.parametrize("name", SURROUNDINGS)
@pytest.mark.parametrize("scenario", ["full_mid_accumulation", "model_optimizer_only"])
def test_results_do_not_depend_on_the_caller(name: str, scenario: str, results: dict[tuple[int, str], Result]) -> None:
    """Whatever a host program has set, the result has the same bits."""
    with SURROUNDINGS[name]():
        result = experiment.evaluate_scenario(11, scenario)

    assert result == results[11, scenario]


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_fingerprint_does_not_depend_on_the_caller(name: str) -> None:
    """Whatever a host program has set, the environment that is recorded is the one that results are computed in."""
    environment = experiment.runtime_environment()

    with SURROUNDINGS[name]():
        assert experiment.runtime_environment() == environment


def test_callers_settings_change_nothing_between_two_results() -> None:
    """What a caller draws and sets while it takes a run's results one by one does not reach the next of them."""
    expected = [experiment.evaluate_scenario(seed, "omit_stream") for seed in (11, 17)]

    taken = []
    for seed in (11, 17):
        taken.append(experiment.evaluate_scenario(seed, "omit_stream"))
        random.random()
        np.random.normal()
        torch.rand(1)

    assert taken == expected


class TestPins:
    """The variables that pin the numerics, in processes of their own."""

    @staticmethod
    def report(first: str, **variables: str) -> tuple[dict[str, str | None], dict[str, str | None], str]:
        """Run a statement and import the experiment; return the pins in the variables and as claimed, and torch's."""
        program = (
            f"{first}\n"
            "import json, os, experiment, torch\n"
            "claimed = experiment.runtime_environment()['numeric_pins']\n"
            "variables = {name: os.environ.get(name) for name in ('ATEN_CPU_CAPABILITY', 'MKL_CBWR')}\n"
            "print(json.dumps([variables, claimed, torch.backends.cpu.get_cpu_capability()]))\n"
        )
        kept = {name: value for name, value in os.environ.items() if name not in experiment.NUMERIC_PINS}
        process = subprocess.run(
            [sys.executable, "-c", program],
            env=kept | {"PYTHONPATH": str(ROOT)} | variables,
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        variables_after, claimed, capability = json.loads(process.stdout)
        return variables_after, claimed, capability

    @pytest.fixture(scope="class")
    @staticmethod
    def reports() -> dict[str, tuple[dict[str, str | None], dict[str, str | None], str]]:
        """Give the reports of both processes, which are run side by side."""
        with ThreadPoolExecutor(2) as pool:
            futures = {
                "torch first": pool.submit(TestPins.report, "import torch"),
                "set by the user": pool.submit(TestPins.report, "", MKL_CBWR="AUTO"),
            }
            return {name: future.result() for name, future in futures.items()}

    def test_pins_that_come_too_late_are_not_claimed(self, reports: dict[str, tuple[Result, Result, str]]) -> None:
        """Imported after torch, which has read the variables, no pin is set and none recorded."""
        nothing = {"ATEN_CPU_CAPABILITY": None, "MKL_CBWR": None}

        variables, claimed, _ = reports["torch first"]

        assert (variables, claimed) == (nothing, nothing)

    def test_what_the_user_set_stays(self, reports: dict[str, tuple[Result, Result, str]]) -> None:
        """A variable that the user set keeps its value, the other one is set and in force, and both are recorded."""
        pins = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "AUTO"}

        variables, claimed, capability = reports["set by the user"]

        assert (variables, claimed, capability) == (pins, pins, "DEFAULT")


def test_threads_wait_for_one_another() -> None:
    """Experiments in several threads of one process give the results that they give alone."""
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda seed: experiment.evaluate_scenario(seed, "full_boundary"), range(1, 5)))

    assert all(result["exact_resume"] for result in results)


def test_another_generator_in_the_place_of_numpys() -> None:
    """A host that has put another generator in the place of NumPy's is told so."""
    original = np.random.get_bit_generator()  # type: ignore[attr-defined]  # missing in the stubs
    np.random.set_bit_generator(np.random.PCG64(3))  # type: ignore[attr-defined]  # likewise
    try:
        with pytest.raises(ValueError, match="NumPy's global generator is PCG64, not the MT19937"):
            experiment.evaluate_scenario(11, "full_boundary")
    finally:
        np.random.set_bit_generator(original)  # type: ignore[attr-defined]  # likewise
