"""The omission matrix: a resume without each component in turn, from each interruption point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resume_audit.process.launcher import RunFailed
from resume_audit.run import Outcome, Run, Trace, differing


@dataclass
class Matrix:
    """What the cells have in common: the job's seed, steps and components, the uninterrupted run, the checkpoints."""

    seed: int
    steps: int
    components: list[str]
    reference: dict[int, Outcome]
    checkpoints: dict[int, Path]

    def cells(self) -> list[tuple[str, int]]:
        return [(component, after) for component in self.components for after in self.checkpoints]

    def cell(self, start: Callable[[Any], Any], component: str, after: int) -> dict[str, Any]:
        """Resume after `after` without `component`, and say what becomes of it."""
        told: dict[str, Any] = {
            "component": component, "interrupted_after": after, "outcome": "inert", "first_step": None, "span": None,
            "message": None,
        }  # fmt: skip
        task = Run(self.seed, self.steps, phase="matrix", start=after, load=self.checkpoints[after], omit=component)
        try:
            trace: Trace = start(task)
        except RunFailed as failed:
            message = f"{failed.failure.type}: {failed.failure.message}".strip().splitlines() or [failed.failure.type]
            return told | {"outcome": "error", "message": message[0]}
        names = {step: differing(self.reference[step], outcome) for step, outcome in sorted(trace.outcomes.items())}
        wrong = [step for step, differ in names.items() if differ]
        if not wrong:
            return told
        # What was left out differs itself from the start; it shows where it makes something else differ.
        elsewhere = [step for step in wrong if names[step] != [component]]
        first, last = (elsewhere or wrong)[0], wrong[-1]
        if last < self.steps:
            return told | {"outcome": "heals", "first_step": first, "span": last - first + 1}
        return told | {"outcome": "diverges", "first_step": first}
