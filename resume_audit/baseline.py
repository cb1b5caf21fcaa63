"""Where two uninterrupted runs first differ, in which outcomes, and in which reachable state."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from resume_audit.graph.difference import Suspect, difference
from resume_audit.graph.nodes import Snapshot
from resume_audit.probe import Traces
from resume_audit.run import Outcome, only_components

KEPT = 40
"""Steps before the difference at which the state is looked at."""


def first_difference(full: dict[int, Outcome], other: dict[int, Outcome]) -> tuple[int | None, list[str]]:
    """The first step at which two runs differ in what both have observed, and the names that differ there."""
    for step in sorted(other):
        one, two = full.get(step, {}), other[step]
        partly = set(one) if only_components(two) else set(one) - set(only_components(one))
        names = [name for name in one | two if (name in partly or name in two) and one.get(name) != two.get(name)]
        if names:
            return step, names
    return None, []


def locate(start: Callable[..., Any], folder: Path, seed: int, step: int, outcomes: list[str]) -> dict[str, Any]:
    """Run the job again, twice, with a look at all reachable state, and say where it differs first."""
    steps = tuple(sorted({0, *range(max(0, step - KEPT), step + 1)}))
    folders = [folder / "first", folder / "second"]
    for place in folders:
        place.mkdir()
    first = start(Traces(seed, steps, folders[0], observe=True))
    second = start(Traces(seed, steps, folders[1], observe=True), second=True)
    seen, names = first_difference(first, second)
    if seen is None:  # it repeats itself as long as both are looked at: the looking is what changes it
        start(Traces(seed, steps, folders[1], observe=False), second=True)
        seen, names = step, outcomes
    return {"step": seen, "outcomes": names, "state": _state(folders, [s for s in steps if s <= seen])}


def _state(folders: list[Path], steps: list[int]) -> list[str]:
    """Paths of what differs at the first of some steps at which anything does."""
    merely_ordered: list[str] = []
    for step in steps:
        one, two = (_read(folder / f"{step}") for folder in folders)
        found = difference(one, two).suspects
        told = sorted((s for s in found if s.kind != "order" or s.sort in ("set", "frozenset")), key=_rank)
        if any(suspect.kind != "order" for suspect in told):
            return list(dict.fromkeys(merely_ordered + [suspect.path for suspect in told]))
        merely_ordered = merely_ordered or [suspect.path for suspect in told]
    return list(dict.fromkeys(merely_ordered))


def _read(file: Path) -> Snapshot:
    snapshot: Snapshot = pickle.loads(file.read_bytes())
    return snapshot


def _rank(suspect: Suspect) -> tuple[bool, bool, int]:
    return suspect.kind != "order", suspect.path.endswith(".grad"), suspect.path.count(".")
