"""What a save changes in the job that goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resume_audit.diagnosis import nothing_proven, told_of
from resume_audit.graph.difference import Difference, difference
from resume_audit.probe import Standing
from resume_audit.process.source import Factory
from resume_audit.run import Tell, store


@dataclass
class AroundSave(Standing):
    """The state reachable before a save and after it."""

    write: Path = Path()

    def work(self, factory: Factory, tell: Tell) -> Difference:
        job = self.stand(factory, tell)
        before = self.walk(factory, job).snapshot
        store(job, self.write, self.step, tell)
        found = difference(before, self.walk(factory, job).snapshot)
        found.pairs = {}
        return found


def what_saving_changes(start: Callable[[Any], Any], seed: int, after: int, folder: Path) -> dict[str, Any]:
    """A diagnosis of a save that disturbs: the state that it changes, as suspects."""
    found: Difference = start(AroundSave(seed, after, write=folder / f"around-{after}"))
    why = "the save itself changes the job that goes on; the suspects are what differs before and after it"
    return nothing_proven(why) | {"suspects": [told_of(s) for s in found.suspects if s.kind != "order"]}
