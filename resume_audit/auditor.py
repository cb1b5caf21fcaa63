"""The audit from beginning to end: baseline, saves, resumes, diagnosis, matrix; and what it all amounts to."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from resume_audit import plan
from resume_audit.baseline import first_difference, locate
from resume_audit.diagnosis import Case, Diagnosis, nothing_proven
from resume_audit.matrix import Matrix
from resume_audit.options import JOBS, Options, UsageError, points, processors, whole
from resume_audit.process import source as sources
from resume_audit.process.failure import Failure
from resume_audit.process.launcher import (
    HASH_SEEDS,
    ForkLauncher,
    FreshLauncher,
    Launcher,
    RunFailed,
    Servers,
    open_servers,
    run,
)
from resume_audit.process.source import Factory, Source
from resume_audit.report import Report, number
from resume_audit.run import METRICS, Run, Task, Trace, differing, only_components
from resume_audit.saving import what_saving_changes

Item = TypeVar("Item")
Result = TypeVar("Result")
EMPTY_LOAD = 60.0
"""Seconds that a load may spend on an empty checkpoint."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass
class Leg:
    """One interrupted run: after which steps, its last checkpoint, in a chain the run before, and what came of it."""

    after: tuple[int, ...]
    checkpoint: Path
    before: Leg | None = None
    saved: Trace | None = None
    resumed: Trace | None = None
    failure: Failure | None = None
    told: dict[str, Any] = field(default_factory=dict)


def audit(
    job: Factory | str | Path,
    *,
    factory: str | None = None,
    seed: int = 0,
    steps: int | None = None,
    interrupt: Sequence[int] | None = None,
    every: bool = False,
    chain: bool | None = None,
    matrix: bool = False,
    diagnose: bool = True,
    fresh: bool = False,
    jobs: int | None = None,
    timeout: float | None = 600.0,
    progress: Progress | None = None,
) -> Report:
    """Audit a job.

    Args:
        job: What builds the job from a seed: the function itself, or `FILE.py:factory`, `package.module:factory`.
        factory: Name of that function, where `job` names a file or a module; by default `make_job`.
        seed: What the factory is called with.
        steps: Length of the uninterrupted run; by default the module's `STEPS`.
        interrupt: Steps after which to interrupt; by default the module's `INTERRUPT`, else five chosen ones.
        every: Interrupt after every step.
        chain: Interrupt the resumed run again, at each later point; by default the module's `CHAIN`, else not.
        matrix: Resume without each component in turn.
        diagnose: Look for what was lost where a resume differs.
        fresh: A whole new interpreter for every run.
        jobs: Runs side by side.
        timeout: Longest time that one run may take, in seconds; None for no limit.
        progress: Told how far the audit is.

    Returns:
        The report. Errors of the job are in it, as verdict ERROR.

    Raises:
        UsageError: An option that cannot be followed.
    """
    options = Options(
        seed, steps, interrupt, every, chain, matrix, diagnose, fresh, JOBS if jobs is None else jobs, timeout
    )
    if isinstance(job, (str, Path)):
        return audit_source(sources.parse(str(job), factory), options, None, progress)
    return audit_source(sources.of(job), options, job, progress)


def audit_source(
    source: Source, options: Options, factory: Factory | None = None, progress: Progress | None = None
) -> Report:
    """Audit the job of a source; `factory` is the function itself, where the caller has it."""
    folder = Path(tempfile.mkdtemp(prefix="resume-audit-"))
    try:
        if options.fresh or not hasattr(os, "fork"):
            return _Audit(FreshLauncher(source, folder, options.timeout), source, options, folder, progress).make()
        with open_servers() as servers:
            return _forked(servers, source, options, factory, folder, progress)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _forked(
    servers: Servers, source: Source, options: Options, factory: Factory | None, folder: Path, progress: Progress | None
) -> Report:
    if source.kind != "object":
        servers.start()
    launcher = ForkLauncher(servers, source, factory, options.timeout)
    try:
        return _Audit(launcher, source, options, folder, progress).make()
    finally:
        launcher.close()


class _Audit:
    """One audit in progress."""

    def __init__(
        self, launcher: Launcher, source: Source, options: Options, folder: Path, progress: Progress | None
    ) -> None:
        self.launcher, self.options, self.folder = launcher, options, folder
        self.progress = progress or (lambda *_: None)
        self.data: dict[str, Any] = {
            "schema_version": 1, "job": source.label, "seed": options.seed, "steps": options.steps or 0,
            "verdict": "ERROR",
            "components": [],
            "options": {
                "interrupt": None if options.interrupt is None else sorted(set(options.interrupt)),
                "every": options.every, "chain": bool(options.chain), "matrix": options.matrix, "fresh": options.fresh,
                "jobs": options.jobs, "timeout": options.timeout,
            },
            "versions": {"python": platform.python_version(), "torch": str(torch.__version__), "numpy": np.__version__},
            "interruptions": [], "baseline": {"repeatable": None, "first_difference": None},
            "resumes": [], "matrix": None,
            "error": None,
        }  # fmt: skip
        self.pool = ThreadPoolExecutor(options.jobs)
        self.threads = max(1, processors() // options.jobs)  # torch's, in each run: those side by side share them

    def make(self) -> Report:
        try:
            self.work()
        except RunFailed as failed:
            self.fail(failed.failure)
        except BaseException:
            self.launcher.close()  # ends the runs that the pool is waiting for
            raise
        finally:
            self.pool.shutdown(wait=True, cancel_futures=True)
        return Report(self.data)

    def fail(self, failure: Failure) -> None:
        self.data["verdict"] = "ERROR"
        if self.data["error"] is None:
            self.data["error"] = failure.to_dict()

    def start(self, task: Task, **where: Any) -> Any:
        """The result of a task in a process of its own; `timeout` where it is not the usual one."""
        task.threads = self.threads
        return run(self.launcher, task, **{"timeout": self.options.timeout, **where})

    def each(self, what: str, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Do some work for each item, as many side by side as were asked for; the results in the order of the items."""
        self.progress(what, 0, len(items))
        futures = [self.pool.submit(work, item) for item in items]
        results = []
        for done, future in enumerate(futures, start=1):
            results.append(future.result())
            self.progress(what, done, len(items))
        return results

    # ------------------------------------------------------------------------------------------------ the phases

    def work(self) -> None:
        self.progress("importing", 0, 1)
        self.launcher.prepare(HASH_SEEDS[0])
        self.read_constants()
        if not self.baseline():
            return
        chosen = self.points()
        self.data["interruptions"] = [{"after": after, "why": why} for after, why in chosen]
        legs = self.legs([after for after, _ in chosen])
        self.refuse_another_file(legs)
        self.each("resuming", self.diagnosed, [leg for leg in legs if self.judge(leg)])
        self.data["resumes"] = [leg.told for leg in legs]
        verdicts = {leg.told["verdict"] for leg in legs}
        self.data["verdict"] = next(v for v in ("ERROR", "DIVERGES", "EXACT") if v in verdicts)
        for leg in legs:
            if leg.failure is not None:
                self.fail(leg.failure)
        if self.options.matrix and self.data["verdict"] != "ERROR":
            checkpoints = {leg.after[0]: leg.checkpoint for leg in legs if len(leg.after) == 1}
            matrix = Matrix(
                self.options.seed, self.steps, self.reference.components, self.reference.outcomes, checkpoints
            )
            self.data["matrix"] = self.each("leaving out", lambda cell: matrix.cell(self.start, *cell), matrix.cells())

    def read_constants(self) -> None:
        constants, options = self.launcher.constants, self.options
        try:
            if options.steps is None and constants.get("STEPS") is None:
                raise UsageError("how many steps? say --steps N, or STEPS in the job's module")  # noqa: TRY301 -- as below
            self.steps = options.steps if options.steps is not None else whole("STEPS", constants["STEPS"], 1)
            self.data["steps"] = self.steps
            self.asked = options.interrupt
            if self.asked is None and not options.every and constants.get("INTERRUPT") is not None:
                self.asked = points("INTERRUPT", constants["INTERRUPT"])
            if self.asked is not None:
                self.data["options"]["interrupt"] = sorted(set(self.asked))
                plan.requested(self.asked, self.steps)
        except UsageError as error:
            raise RunFailed(Failure("usage", None, "UsageError", str(error))) from None
        self.chain = bool(constants.get("CHAIN", False)) if options.chain is None else options.chain
        self.data["options"]["chain"] = self.chain

    def points(self) -> list[tuple[int, str]]:
        if self.options.every:
            return plan.every(self.steps)
        if self.asked is not None:
            return plan.requested(self.asked, self.steps)
        return plan.chosen(self.reference, self.steps)

    def baseline(self) -> bool:
        """Three uninterrupted runs; whether they agree.

        The second is not observed, for looking must change nothing; the third is, for what comes and goes between
        steps shows in no run that is looked at only in the end.
        """
        seed, steps = self.options.seed, self.steps
        runs = [
            (Run(seed, steps, in_flight=True), False),
            (Run(seed, steps, observe=False), True),
            (Run(seed, steps), True),
        ]
        self.reference, *others = self.each("baseline", lambda task: self.start(task[0], second=task[1]), runs)
        self.data["components"] = self.reference.components
        for other in others:
            step, outcomes = first_difference(self.reference.outcomes, other.outcomes)
            if step is not None:
                found = locate(self.start, self.folder, seed, step, outcomes)
                self.data["baseline"] = {"repeatable": False, "first_difference": found}
                self.data["verdict"] = "ABSTAIN"
                return False
        self.data["baseline"]["repeatable"] = True
        return True

    def legs(self, afters: list[int]) -> list[Leg]:
        """All interrupted runs: one for each point, and for a chain one for each row of points."""
        single = [Leg((after,), self.folder / f"after-{after}") for after in afters]
        self.each("resuming", self.run_single, single)
        if not self.chain:
            return single
        chained: list[Leg] = []
        for leg in single[1:]:
            before = chained[-1] if chained else single[0]
            chained.append(Leg((*before.after, leg.after[0]), self.folder / f"chain-{leg.after[0]}", before))
            self.run_chained(chained[-1], before)
        return single + chained

    def run_single(self, leg: Leg) -> None:
        (after,) = leg.after
        try:
            self.save(
                leg, Run(self.options.seed, self.steps, phase="save", saves={after: leg.checkpoint}, observe=False)
            )
            self.resume(leg)
        except RunFailed as failed:
            leg.failure = failed.failure

    def run_chained(self, leg: Leg, before: Leg) -> None:
        start, stop = leg.after[-2:]
        try:
            task = Run(self.options.seed, stop, phase="resume", start=start, load=before.checkpoint, observe=False)
            self.save(leg, replace(task, saves={stop: leg.checkpoint}))
            self.resume(leg)
        except RunFailed as failed:
            leg.failure = failed.failure

    def save(self, leg: Leg, task: Run) -> None:
        """The run that saves. Raises RunFailed, also where it has written nothing."""
        leg.saved = self.start(task)
        if not leg.saved.written:
            nothing = "the save wrote nothing: there is no file, or an empty one"
            raise RunFailed(Failure("save", leg.after[-1], "NothingSaved", nothing))

    def refuse_another_file(self, legs: list[Leg]) -> None:
        """Load an empty checkpoint. Raises RunFailed where it restores what the right one did: that one is not read."""
        for leg in legs:
            if leg.resumed is None or not leg.resumed.own_load or leg.resumed.loaded == leg.resumed.fresh:
                continue
            after, empty = leg.after[-1], self.folder / "empty"
            empty.mkdir() if leg.checkpoint.is_dir() else empty.touch()
            task = Run(self.options.seed, after, phase="load", start=after, load=empty, observe=False)
            try:
                restored = self.start(task, timeout=min(self.options.timeout or EMPTY_LOAD, EMPTY_LOAD)).loaded
            except RunFailed:  # as it should be
                return
            if restored == leg.resumed.loaded:
                told = "the load does not read the checkpoint that it is given: an empty one restores the same state"
                raise RunFailed(Failure("load", after, "ReadsAnotherFile", told))
            return

    def resume(self, leg: Leg) -> None:
        leg.resumed = self.start(
            Run(self.options.seed, self.steps, phase="resume", start=leg.after[-1], load=leg.checkpoint)
        )

    # ------------------------------------------------------------------------------------------------- judging

    def judge(self, leg: Leg) -> bool:
        """Write down what came of a leg; whether it wants a diagnosis."""
        leg.told = told = _told(leg)
        if leg.failure is not None or leg.saved is None or leg.resumed is None:
            told["verdict"] = "ERROR"
            if leg.saved is not None and not leg.saved.written:
                told["vacuous"] = [{"what": "nothing_saved", "message": "The save wrote nothing."}]
            return False
        after, reference = leg.after[-1], self.reference.outcomes
        trace = _held_against(leg.resumed, reference, after)
        told["trace"] = [{"step": step, "parameters": None, "outcomes": names} for step, names in trace.items()]
        disturbed = None
        if len(leg.after) == 1:
            disturbed, names = first_difference(reference, leg.saved.outcomes)
            told["saving_disturbs"] = disturbed is not None
        wrong = {step: names for step, names in trace.items() if names}
        self.vacuous(leg)
        if not wrong and disturbed is None and not told["vacuous"]:
            return False
        told["verdict"] = "DIVERGES"
        if wrong:
            step = min(wrong)
            told["first_divergence"] = {"step": step, "outcomes": wrong[step]}
            later = min((s for s in wrong if s), default=None)
            visible = None if later is None else {"step": later, "outcomes": wrong[later]}
            told["moments"] = {"lost_after": after, "first_visible": visible}
            last = max(wrong)
            told["healed_after"] = last if last < self.steps else None
        elif disturbed is not None:
            told["first_divergence"] = {"step": disturbed, "outcomes": names}
        return self.options.diagnose and (bool(wrong) or disturbed is not None)

    def vacuous(self, leg: Leg) -> None:
        """Tell where an agreement would prove nothing."""
        assert leg.saved is not None  # noqa: S101 -- the caller has looked
        assert leg.resumed is not None  # noqa: S101 -- likewise
        reasons: list[tuple[str, str]] = []
        reference, resumed = self.reference, leg.resumed
        if (
            not reference.comparable
            and not any(reference.metrics.values())
            and not any(name.startswith(METRICS) for outcome in reference.outcomes.values() for name in outcome)
        ):
            reasons.append(("nothing_to_compare", "No component has any state and no step returned a metric."))
        at = only_components(reference.outcomes[leg.after[-1]])
        if resumed.components and resumed.loaded == resumed.fresh and differing(at, resumed.fresh):
            reasons.append(
                (
                    "nothing_loaded",
                    "After the load every component is as the factory made it, though the saved state was another.",
                )
            )
        leg.told["vacuous"] = [{"what": what, "message": message} for what, message in reasons]

    def diagnosed(self, leg: Leg) -> None:
        """Find out what a leg has lost, and how far it is off in the end."""
        told, after = leg.told, leg.after[-1]
        try:
            if leg.before is not None and leg.before.told["verdict"] != "EXACT":
                told["diagnosis"] = nothing_proven("what was interrupted again was no longer the uninterrupted run")
                return
            if told["moments"] is None:
                told["diagnosis"] = what_saving_changes(self.start, self.options.seed, after, self.folder)
                return
            self.drift(leg)
            folder = self.folder / f"diagnosis-{'-'.join(map(str, leg.after))}"
            folder.mkdir()
            assert leg.resumed is not None  # noqa: S101 -- a leg with moments has one
            only_loaded = told["moments"]["first_visible"] is None
            case = Case(
                self.options.seed, after, leg.checkpoint, self.steps, after if only_loaded else after + 1,
                self.reference.outcomes, leg.resumed.outcomes, folder,
            )  # fmt: skip
            told["diagnosis"] = Diagnosis(case, self.start).make()
            shutil.rmtree(folder, ignore_errors=True)
        except RunFailed as failed:
            leg.failure = failed.failure

    def drift(self, leg: Leg) -> None:
        """The resumed run once more, this time measured against the uninterrupted one."""
        after = leg.after[-1]
        folder = self.folder / f"parameters-{'-'.join(map(str, leg.after))}"
        folder.mkdir()
        self.start(Run(self.options.seed, self.steps, observe=False, write_parameters=folder, parameters_from=after))
        measured: Trace = self.start(
            Run(self.options.seed, self.steps, phase="resume", start=after, load=leg.checkpoint, observe=False,
                read_parameters=folder, parameters_from=after)
        )  # fmt: skip
        shutil.rmtree(folder, ignore_errors=True)
        for entry in leg.told["trace"]:
            entry["parameters"] = number(measured.drift.get(entry["step"] or after))
        leg.told["drift"] = {
            "parameters": number(measured.drift.get(self.steps)),
            "metrics": _metric_differences(self.reference.metrics, measured.metrics, after),
        }


def _told(leg: Leg) -> dict[str, Any]:
    return {
        "interrupted_after": list(leg.after), "verdict": "EXACT", "saving_disturbs": False, "first_divergence": None,
        "moments": None, "healed_after": None, "drift": None, "trace": [], "vacuous": [], "diagnosis": None,
    }  # fmt: skip


def _held_against(resumed: Trace, reference: dict[int, dict[str, str]], after: int) -> dict[int, list[str]]:
    """What differs at every step of a resumed run; step 0 is the state right after loading."""
    trace = {0: differing(only_components(reference[after]), resumed.loaded)}
    return trace | {step: differing(reference[step], outcome) for step, outcome in sorted(resumed.outcomes.items())}


def _metric_differences(
    ours: dict[int, dict[str, float]], theirs: dict[int, dict[str, float]], after: int
) -> dict[str, float | str]:
    """The difference of each metric at the last step at which either run returned it."""
    found: dict[str, float | str] = {}
    for step in sorted(theirs):
        if step <= after:
            continue
        for name in ours.get(step, {}) | theirs[step]:
            one, two = ours.get(step, {}).get(name), theirs[step].get(name)
            if one is None or two is None:
                found[name] = "inf"
            elif one == two or (one != one and two != two):  # noqa: PLR0124 -- a NaN is what differs from itself
                found[name] = 0.0
            else:
                gap = abs(one - two)
                found[name] = gap if gap < float("inf") else "inf"
    return found
