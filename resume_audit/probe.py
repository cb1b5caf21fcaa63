"""Tasks that look into a run and change it: snapshots, patches, proofs. Each runs in a process of its own."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from resume_audit.graph.cut import Cutter
from resume_audit.graph.difference import Difference, difference
from resume_audit.graph.meeting import Function, Meeting, Pause, advance, follow, live_generator, suspended
from resume_audit.graph.nodes import Snapshot
from resume_audit.graph.patch import Patch
from resume_audit.graph.setter import Setter
from resume_audit.graph.walk import Walk
from resume_audit.job import Job
from resume_audit.process.source import Factory
from resume_audit.run import (
    Outcome,
    Task,
    Tell,
    build,
    component_digests,
    differing,
    metric_digests,
    only_components,
    restore,
    take_step,
)


@dataclass(frozen=True)
class Cure:
    """Values to be set in the resumed run: of these suspects of a patch, right after loading or at a meeting."""

    patch: Path
    suspects: frozenset[int]
    meeting: Meeting | None = None


@dataclass
class Standing(Task):
    """A run brought to where it is to be looked at: resumed and cured, or uninterrupted to the same step.

    further: steps that a resumed run takes after the load. refused: what could not be set, by the patch and the number
    of the suspect, and why.
    """

    seed: int
    step: int
    load: Path | None = None
    meeting: Meeting | None = None
    cures: tuple[Cure, ...] = ()
    phase: str = "diagnosis"
    further: int = 0
    refused: dict[tuple[Path, int], str] = field(default_factory=dict)

    def stand(self, factory: Factory, tell: Tell) -> Job:
        job = build(factory, self.seed, tell)
        if self.load is not None:
            restore(job, self.load, self.step, tell)
            for cure in self.cures:
                if cure.meeting is None:
                    self.apply(factory, job, cure)
        begun = 0 if self.load is None else self.step
        for number in range(begun + 1, self.step + self.further + 1):
            tell.at("diagnosis", number)
            take_step(job)
        tell.at("diagnosis", self.step)
        return job

    def walk(self, factory: Factory, job: Job, at: Any = None, *, contents: bool = True) -> Walk:
        """A walk of the job; `at` is the function, and its generator, in the middle of whose run it is made."""
        running = [] if at is None or at[1] is None else [(at[0].path, at[1])]
        return Walk(contents=contents).of_job(job, module_of(factory), running)

    def apply(self, factory: Factory, job: Job, cure: Cure, generator: Any = None) -> None:
        if cure.suspects:
            patch: Patch = pickle.loads(cure.patch.read_bytes())
            changes = [change for change in patch.changes if change.suspect in cure.suspects]
            at = None if cure.meeting is None else (cure.meeting.function, generator)
            refused = Setter(self.walk(factory, job, at, contents=False), patch).apply(changes)
            self.refused |= {(cure.patch, suspect): why for suspect, why in refused.items()}

    def pauses(self, factory: Factory, job: Job) -> list[Pause]:
        """The cures that wait for a meeting in the coming step."""
        return [
            Pause(cure.meeting, partial(self.apply, factory, job, cure))
            for cure in self.cures if cure.meeting is not None and cure.suspects
        ]  # fmt: skip

    def at_meeting(self, factory: Factory, job: Job, then: Any) -> bool:
        """Do `then` with a walk where the job stands, or at the meeting. Whether it got there."""
        if self.meeting is None:
            then(self.walk(factory, job))
            return True
        function, generator = self.meeting.function, None
        if self.load is None:
            generator = live_generator(self.walk(factory, job, contents=False), self.meeting.function)
        here = Pause(self.meeting, lambda owner: then(self.walk(factory, job, (function, owner))), generator)
        pauses = [*self.pauses(factory, job), here]
        return advance(lambda: take_step(job), pauses)[1] == len(pauses)


@dataclass
class Photograph(Standing):
    """The snapshot of a run, written to a file; whether it was to be had."""

    write: Path = Path()

    def work(self, factory: Factory, tell: Tell) -> bool:
        job = self.stand(factory, tell)

        def then(walk: Walk) -> None:
            self.write.write_bytes(pickle.dumps(walk.snapshot))

        return self.at_meeting(factory, job, then)


@dataclass
class Found:
    """What `Compare` tells: the difference, the suspended functions, and what is out of reach.

    out_of_reach: why, by the number of the suspect. detached: as in the patch.
    """

    difference: Difference
    functions: list[Function]
    out_of_reach: dict[int, str]
    detached: list[str]


@dataclass
class Compare(Standing):
    """The uninterrupted run against the snapshot of the resumed one; the patch goes to a file."""

    read: Path = Path()
    write: Path | None = None

    def work(self, factory: Factory, tell: Tell) -> Found | None:
        job = self.stand(factory, tell)
        theirs: Snapshot = pickle.loads(self.read.read_bytes())
        result: list[Found] = []

        def then(walk: Walk) -> None:
            found = difference(walk.snapshot, theirs)
            patch = Patch()
            if self.write is not None:
                patch = Cutter(walk, found, theirs.nodes).cut()
                self.write.write_bytes(pickle.dumps(patch))
            differ = [suspect.ours for suspect in found.suspects if suspect.kind == "position"]
            new = [
                number
                for number, node in enumerate(walk.nodes)
                if node.kind == "generator" and number not in found.pairs
            ]
            functions = suspended(walk, sorted({*differ, *new}))
            found.pairs = {}
            result.append(Found(found, functions, patch.out_of_reach, patch.detached))

        reached = self.at_meeting(factory, job, then)
        return result[0] if reached and result else None


NOWHERE = Function("", "", "", 0)


@dataclass
class Follow(Standing):
    """The instructions that a function runs in the next step, until it yields."""

    function: Function = NOWHERE

    def work(self, factory: Factory, tell: Tell) -> list[int]:
        job = self.stand(factory, tell)
        generator = None
        if self.load is None:
            generator = live_generator(self.walk(factory, job, contents=False), self.function)
            if generator is None:
                return []
        return follow(self.function, lambda: take_step(job), self.pauses(factory, job), generator)


@dataclass
class Verdict:
    """How a proof ended: healed, or where it first differed, or why it could not be tried.

    refused: which of the cures could not be set, by the patch and the number of the suspect, and why.
    """

    healed: bool
    first: int | None = None
    problem: str = ""
    refused: dict[tuple[Path, int], str] = field(default_factory=dict)


@dataclass
class Prove(Standing):
    """The resumed run again, with some cures, held against the uninterrupted one step by step.

    from_step: the first step that has to agree; `step` itself is the state right after loading and what is cured there.
    """

    stop: int = 0
    from_step: int = 0
    reference: dict[int, Outcome] = field(default_factory=dict)

    def work(self, factory: Factory, tell: Tell) -> Verdict:
        verdict = self.compare(factory, self.stand(factory, tell), tell)
        verdict.refused = self.refused
        return verdict

    def compare(self, factory: Factory, job: Job, tell: Tell) -> Verdict:
        if self.from_step <= self.step and differing(
            component_digests(job), only_components(self.reference[self.step])
        ):
            return Verdict(healed=False, first=self.step)
        pauses = self.pauses(factory, job)
        for step in range(self.step + 1, self.stop + 1):
            tell.at("diagnosis", step)
            if pauses:
                metrics, reached = advance(lambda: take_step(job), pauses)
                if reached < len(pauses):
                    return Verdict(healed=False, problem="the resumed run does not come to the same instruction")
                pauses = []
            else:
                metrics = take_step(job)
            outcome = metric_digests(metrics)
            if step >= self.from_step and differing(outcome | component_digests(job), self.reference[step]):
                return Verdict(healed=False, first=step)
        return Verdict(healed=True)


@dataclass
class Traces(Task):
    """The snapshots of an uninterrupted run at some steps, each in a file of a folder; looking is all that is done."""

    seed: int
    steps: tuple[int, ...]
    folder: Path
    observe: bool = False
    phase: str = "baseline"

    def work(self, factory: Factory, tell: Tell) -> dict[int, Outcome]:
        job = build(factory, self.seed, tell)
        outcomes: dict[int, Outcome] = {}
        for step in range(max(self.steps) + 1):
            tell.at("baseline", step)
            metrics = take_step(job) if step else {}
            outcomes[step] = metric_digests(metrics)
            if self.observe:
                outcomes[step] |= component_digests(job)
            if step in self.steps:
                snapshot = Walk().of_job(job, module_of(factory)).snapshot
                (self.folder / f"{step}").write_bytes(pickle.dumps(snapshot))
        return outcomes


def module_of(factory: Any) -> str:
    """The name of the module that a factory comes from."""
    while hasattr(factory, "func"):
        factory = factory.func
    return getattr(factory, "__module__", "") or ""


__all__ = ["Compare", "Cure", "Follow", "Found", "Photograph", "Prove", "Traces", "Verdict"]
