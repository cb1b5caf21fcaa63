"""From a resume that differs to what was lost: suspects, the proof by transplant, and its minimal set."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from resume_audit.ddmin import BudgetError, ddmin
from resume_audit.graph.difference import Suspect
from resume_audit.graph.meeting import Function, Meeting, meetings
from resume_audit.kinds import kind_of
from resume_audit.probe import Compare, Cure, Follow, Found, Photograph, Prove, Verdict
from resume_audit.process.launcher import RunFailed
from resume_audit.run import Outcome

BUDGET = 160
"""Proofs tried at most for one resume."""

UNDONE = 6
"""Pieces of state told at most that the first step after the load has undone."""

FUNCTIONS = 4
"""Suspended functions tried at most, outermost first."""


@dataclass
class Case:
    """A resume that differs.

    after: steps completed before the load. load: the checkpoint. stop: the last step. from_step: the first
    step that a cure must make agree. reference: the uninterrupted run's outcomes. resumed: those of the run resumed
    from the checkpoint. folder: where snapshots and patches may be kept.
    """

    seed: int
    after: int
    load: Path
    stop: int
    from_step: int
    reference: dict[int, Outcome]
    resumed: dict[int, Outcome]
    folder: Path


Start = Callable[[Any], Any]
"""Runs a task in a process of its own and returns its result; raises RunFailed."""


@dataclass
class Stand:
    """A place at which both runs are compared: right after loading, or at a meeting."""

    found: Found
    patch: Path
    meeting: Meeting | None = None

    @property
    def curable(self) -> list[int]:
        """The suspects that can be set, most telling first."""
        suspects = self.found.difference.suspects
        reachable = (i for i in range(len(suspects)) if i not in self.found.out_of_reach)
        return sorted(reachable, key=lambda i: _rank(suspects[i]))

    @property
    def usual(self) -> list[int]:
        """Those among them that are no mere order of keys."""
        return [i for i in self.curable if self.found.difference.suspects[i].kind != "order"]


Choice = tuple[int, int]
"""A suspect: the number of the stand at which it was found, and its number there."""


class Diagnosis:
    """Finds what a resume has lost."""

    def __init__(self, case: Case, start: Start) -> None:
        self.case, self.start = case, start
        self.stands: list[Stand] = []
        self.tried: dict[frozenset[Choice], bool] = {}
        self.left = BUDGET
        self.cut_short = False
        self.problem = ""

    def make(self) -> dict[str, Any]:
        """The diagnosis as the report's schema describes it."""
        after_load = self.compare(None)
        if after_load is None:
            return nothing_proven(self.problem or "the run right after loading could not be looked into")
        self.stands.append(after_load)
        proven = self.proof()
        if proven is None and self.case.from_step > self.case.after:
            proven = self.proof_inside(after_load)
        return self.tell(proven)

    def undone(self, proven: list[Choice]) -> list[dict[str, str]]:
        """What the first step after the load has undone, where all that is proven are switches.

        A switch says whether something is yet to be done, such as starting a count: it is restored with the switch,
        but what a reader misses is the count. What the loss of other state entails would be told here as well, and
        is of no interest; weights, moments and gradients, which all entail, are left out even so.
        """
        case = self.case
        if case.after >= case.stop or not all(_is_switch(self.suspect(choice)) for choice in proven):
            return []
        picture = case.folder / "undone.picture"
        try:
            self.start(Photograph(case.seed, case.after, case.load, further=1, write=picture))
            found: Found | None = self.start(Compare(case.seed, case.after + 1, read=picture))
        except RunFailed:
            return []
        known = {suspect.path for suspect in self.stands[0].found.difference.suspects}
        new = [s for s in (found.difference.suspects if found else ()) if s.kind in ("part", "content")]
        told = sorted((s for s in new if s.path not in known and kind_of(s) not in ENTAILED), key=_rank)
        return [told_of(suspect) | {"where": f"step {case.after + 1}"} for suspect in told[:UNDONE]]

    def proof_inside(self, after_load: Stand) -> list[Choice] | None:
        """The proof where state is lost while a suspended function is started anew, outermost first."""
        waiting = list(after_load.found.functions)
        for _ in range(FUNCTIONS):
            if not waiting:
                break
            function = waiting.pop(0)
            before = list(self.stands)
            kept: Stand | None = None
            for meeting in self.meeting_points(function):
                stand = self.compare(meeting)
                if stand is None:
                    continue
                self.stands = [*before, stand]
                proven = self.proof()
                if proven is not None:
                    return proven
                kept = kept or stand
            self.stands = before
            if kept is not None:
                self.stands = [*before, kept] if kept.curable else before
                waiting = [f for f in kept.found.functions if f != function and f not in waiting] + waiting
        return None

    # ------------------------------------------------------------------------------------------------ comparing

    def cures(self, chosen: Iterable[Choice] | None = None) -> tuple[Cure, ...]:
        """The cures of some suspects; without a choice, of all that have been found so far."""
        wanted = [(n, i) for n, stand in enumerate(self.stands) for i in stand.usual] if chosen is None else chosen
        by_stand: dict[int, set[int]] = {}
        for number, index in wanted:
            by_stand.setdefault(number, set()).add(index)
        return tuple(
            Cure(self.stands[number].patch, frozenset(suspects), self.stands[number].meeting)
            for number, suspects in sorted(by_stand.items())
        )

    def compare(self, meeting: Meeting | None) -> Stand | None:
        """Photograph the resumed run, cured as far as it can be, and hold the uninterrupted one against the picture."""
        case = self.case
        name = "load" if meeting is None else f"{meeting.function.line}-{meeting.instruction}-{len(self.stands)}"
        picture, patch = case.folder / f"{name}.picture", case.folder / f"{name}.patch"
        try:
            if not self.start(Photograph(case.seed, case.after, case.load, meeting, self.cures(), write=picture)):
                return None
            found = self.start(Compare(case.seed, case.after, None, meeting, read=picture, write=patch))
        except RunFailed as failed:
            self.problem = f"looking into the run failed ({failed.failure.type}: {failed.failure.message})"
            return None
        return None if found is None else Stand(found, patch, meeting)

    def meeting_points(self, function: Function) -> list[Meeting]:
        """Where both runs come to one instruction of a function that was suspended in the uninterrupted one."""
        case = self.case
        try:
            ours = self.start(Follow(case.seed, case.after, None, function=function))
            theirs = self.start(Follow(case.seed, case.after, case.load, cures=self.cures(), function=function))
        except RunFailed:
            return []
        return meetings(function, ours, theirs)

    # ------------------------------------------------------------------------------------------------- proving

    def proof(self) -> list[Choice] | None:
        """A minimal set of suspects whose cure heals the resumed run; None where all of them together do not."""
        usual = [(n, i) for n, stand in enumerate(self.stands) for i in stand.usual]
        everything = [(n, i) for n, stand in enumerate(self.stands) for i in stand.curable]
        for candidates in (usual, everything) if len(usual) < len(everything) else (usual,):
            if candidates and self.heals(frozenset(candidates)):
                return self.minimal([choice for choice in candidates if self.within_reach(choice)])
        return None

    def minimal(self, candidates: list[Choice]) -> list[Choice]:
        """Delta debugging in two rounds: over groups of suspects, then within the groups needed."""
        groups: dict[str, list[Choice]] = {}
        for choice in candidates:
            groups.setdefault(f"{choice[0]} {_family(self.suspect(choice))}", []).append(choice)
        kept = ddmin(list(groups), lambda names: self.heals(frozenset(c for name in names for c in groups[name])))
        for name in kept:
            if len(groups[name]) > 1:
                others = frozenset(c for other in kept if other != name for c in groups[other])
                groups[name] = ddmin(groups[name], partial(self.heals_beside, others))
        return sorted((c for name in kept for c in groups[name]), key=lambda c: _rank(self.suspect(c)))

    def within_reach(self, choice: Choice) -> bool:
        """Whether the value of a suspect can be set: some refuse only when it is tried."""
        return choice[1] not in self.stands[choice[0]].found.out_of_reach

    def heals_beside(self, others: frozenset[Choice], part: frozenset[Choice]) -> bool:
        return self.heals(others | part)

    def heals(self, cured: frozenset[Choice]) -> bool:
        if cured not in self.tried:
            if self.left <= 0:
                self.cut_short = True
                raise BudgetError
            self.left -= 1
            self.tried[cured] = self.try_cure(cured)
        return self.tried[cured]

    def try_cure(self, cured: frozenset[Choice]) -> bool:
        try:
            verdict = self.cured_run(cured, self.case.from_step, self.case.reference)
        except RunFailed as failed:
            self.problem = (
                f"with its values restored the resumed run fails ({failed.failure.type}: {failed.failure.message})"
            )
            return False
        self.problem = verdict.problem
        for stand in self.stands:
            stand.found.out_of_reach |= {
                suspect: why for (patch, suspect), why in verdict.refused.items() if patch == stand.patch
            }
        return verdict.healed

    def cured_run(self, cured: Iterable[Choice], from_step: int, reference: dict[int, Outcome]) -> Verdict:
        """The resumed run with some suspects cured, held against the outcomes of another one."""
        case = self.case
        verdict: Verdict = self.start(
            Prove(case.seed, case.after, case.load, cures=self.cures(cured), stop=case.stop, from_step=from_step,
                  reference=reference)
        )  # fmt: skip
        return verdict

    def idle_gradients(self) -> list[Choice]:
        """Gradients that differ only because the next update throws them away: with or without them the run is one."""
        gradients = [(0, i) for i in self.stands[0].usual if self.suspect((0, i)).path.endswith(".grad")]
        if not gradients:
            return []
        try:
            same = self.cured_run(gradients, self.case.after + 1, self.case.resumed).healed
        except RunFailed:
            return []
        return gradients if same else []

    def suspect(self, choice: Choice) -> Suspect:
        number, index = choice
        return self.stands[number].found.difference.suspects[index]

    # ------------------------------------------------------------------------------------------------- telling

    def tell(self, proven: list[Choice] | None) -> dict[str, Any]:
        if proven is not None:
            told = [self.entry(choice) for choice in proven]
            paths = {entry["path"] for entry in told}
            rest = [
                s.path
                for stand in self.stands
                for s in stand.found.difference.suspects
                if s.kind not in ("order", "position")
            ]
            return {
                "proven": _once(told),
                "minimal": not self.cut_short,
                "suspects": self.undone(proven),
                "without_effect": list(dict.fromkeys(path for path in rest if path not in paths)),
                "out_of_reach": [],
                "aliasing": _aliasing(map(self.suspect, proven)),
                "unproven": None,
            }
        found = self.stands[0].found
        idle = [index for _, index in self.idle_gradients()]
        named = [s for i, s in enumerate(found.difference.suspects) if i not in idle]
        ranked = sorted((s for s in named if s.kind not in ("order", "position")), key=_rank)
        if not ranked:  # the order of a set, which is nobody's first thought
            ranked = [
                s for i, s in enumerate(found.difference.suspects) if s.kind == "order" and i in found.out_of_reach
            ]
        unreachable = [
            {"path": suspect.path or "?", "why": f"{found.out_of_reach[i]}."}
            for i, suspect in enumerate(found.difference.suspects)
            if i in found.out_of_reach and (suspect.kind != "order" or suspect in ranked)
        ]
        unreachable += [{"path": path or "?", "why": f"{why}, which a walk cannot enter."} for path, why in
                        found.difference.closed.items()]  # fmt: skip
        unreachable += [{"path": path, "why": "the graph by which it was computed cannot be carried into another run."}
                        for path in found.detached]  # fmt: skip
        further = sorted((s for stand in self.stands[1:] for s in stand.found.difference.suspects
                          if s.kind not in ("order", "position")), key=_rank)  # fmt: skip
        return nothing_proven(self.why_unproven(ranked, unreachable)) | {
            "suspects": _once(told_of(suspect) for suspect in [*ranked, *further]),
            "without_effect": list(dict.fromkeys(found.difference.suspects[index].path for index in idle)),
            "out_of_reach": unreachable,
            "aliasing": _aliasing(ranked),
        }

    def entry(self, choice: Choice) -> dict[str, str]:
        """A suspect for the report, with the place where the runs were compared if not after loading."""
        meeting = self.stands[choice[0]].meeting
        told = told_of(self.suspect(choice))
        return (
            told if meeting is None else told | {"where": f"{meeting.function.name.rpartition('.')[2]}() started anew"}
        )

    def why_unproven(self, ranked: list[Suspect], unreachable: list[dict[str, str]]) -> str:
        if self.problem:
            return self.problem
        if not ranked and not unreachable:
            return "no reachable state differs right after loading"
        if not ranked:
            return f"what differs is out of reach: {unreachable[0]['path']}"
        beyond = "" if not unreachable else ": what is out of reach may be what was lost"
        return f"restoring all reachable state that differs does not make the resumed run exact{beyond}"


def nothing_proven(why: str) -> dict[str, Any]:
    """A diagnosis without a finding, and why there is none."""
    return {
        "proven": [],
        "minimal": False,
        "suspects": [],
        "without_effect": [],
        "out_of_reach": [],
        "aliasing": [],
        "unproven": f"{why}.",
    }


def told_of(suspect: Suspect) -> dict[str, str]:
    """A suspect as a report has it."""
    return {
        "path": suspect.path, "kind": kind_of(suspect),
        "uninterrupted": suspect.first or "?", "resumed": suspect.second or "?",
    }  # fmt: skip


def _once(entries: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    seen: dict[tuple[str, ...], dict[str, str]] = {}
    for entry in entries:
        seen.setdefault(tuple(entry.values()), entry)
    return list(seen.values())


def _aliasing(suspects: Iterable[Suspect]) -> list[dict[str, Any]]:
    told = []
    for suspect in suspects:
        if suspect.shared and suspect.path not in suspect.with_:
            other = "separate" if suspect.shared == "shared" else "shared"
            told.append({"paths": [suspect.path, *suspect.with_], "uninterrupted": suspect.shared, "resumed": other})
    return told


def _family(suspect: Suspect) -> str:
    """What a suspect is grouped by: gradients, weights and moments of one sort stand or fall together."""
    path = re.sub(r"\[[^\[\]]*\]", "[]", suspect.path)
    if suspect.path.endswith(".grad"):
        return f"{suspect.kind} *.grad"
    if suspect.sort == "tensor" or suspect.kind in ("alias", "storage"):
        head, _, tail = path.partition(".")
        return f"{suspect.kind} {head}.*{'.' + tail.rpartition('.')[2] if '[]' in path else ''}"
    return f"{suspect.kind} {path}" if "[]" in path else f"{suspect.kind} {suspect.path}"


ENTAILED = ("model", "optimizer", "gradients", "generator")
"""Kinds of state that differ after a wrong step, whatever made it wrong."""


def _is_switch(suspect: Suspect) -> bool:
    return {suspect.first, suspect.second} <= {"True", "False", "None"}


def _rank(suspect: Suspect) -> tuple[int, int, str]:
    """Most telling first: what a program would lose before what is thrown away and made anew."""
    weight = {"part": 1, "content": 1, "alias": 2, "storage": 3, "position": 4, "order": 6}.get(suspect.kind, 5)
    if suspect.path.endswith(".grad"):
        weight += 3
    if re.search(r"\._[a-z]", suspect.path):
        weight += 2
    return weight, suspect.path.count(".") + suspect.path.count("["), suspect.path
