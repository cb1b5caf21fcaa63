"""What an audit may be asked for, and what it refuses before any work begins. Imports nothing that takes long."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


class UsageError(ValueError):
    """The audit was asked for in a way that cannot be followed."""


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


JOBS = min(4, processors())
"""Runs side by side, where nobody says how many."""


@dataclass(frozen=True)
class Options:
    """How to audit. interrupt: points, or None to choose. timeout: seconds that one run may take, None for no limit.

    Raises:
        UsageError: a value that no audit can have.
    """

    seed: int = 0
    steps: int | None = None
    interrupt: Sequence[int] | None = None
    every: bool = False
    chain: bool | None = None
    matrix: bool = False
    diagnose: bool = True
    fresh: bool = False
    jobs: int = JOBS
    timeout: float | None = 600.0

    def __post_init__(self) -> None:
        if self.steps is not None:
            whole("steps", self.steps, 1)
        whole("jobs", self.jobs, 1)
        whole("seed", self.seed, 0, 2**32 - 1)
        if self.interrupt is not None:
            points("interrupt", self.interrupt)
        if self.timeout is not None and not 0 < self.timeout < math.inf:
            raise UsageError(f"timeout has to be more than 0 seconds, not {self.timeout:g}")
        if self.every and self.interrupt is not None:
            raise UsageError("either interruption points or every step, not both")


def whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """A whole number within its bounds. Raises UsageError for anything else."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{name} has to be a whole number, not {value!r}")
    if value < least or (most is not None and value > most):
        allowed = f"at least {least}" if most is None else f"from {least} to {most}"
        raise UsageError(f"{name} has to be {allowed}, not {value}")
    return value


def points(name: str, value: object) -> list[int]:
    """Interruption points as a list. Raises UsageError where it is none, is empty, or holds no steps."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise UsageError(f"{name} has to be a list of steps such as [1, 7], not {value!r}")
    found = [whole(f"a step of {name}", point, 0) for point in value]
    if not found:
        raise UsageError(f"{name} names no step to interrupt after")
    return found


def refuse_unwritable(job: str, files: Iterable[Path]) -> None:
    """Find out before the work begins where its result cannot be written, or would take the place of something else.

    Raises:
        OSError: the file system refuses.
        UsageError: a result would replace the job's own file, or another result.
    """
    taken = {Path(job.partition(".py:")[0] + ".py" if ".py:" in job else job).resolve(): "the job itself"}
    for file in files:
        if file.is_dir():
            raise IsADirectoryError(f"{file} is a folder")
        if not file.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {file.parent} to write {file.name} to")
        if not os.access(file if file.exists() else file.parent, os.W_OK):
            raise PermissionError(f"{file} cannot be written")
        if file.resolve() in taken:
            raise UsageError(f"{file} would replace {taken[file.resolve()]}")
        taken[file.resolve()] = "another result"
