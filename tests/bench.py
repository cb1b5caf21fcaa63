"""Measure speed and memory, and print each figure beside its bound: `make bench`, or `python tests/bench.py`.

Each figure, but for those in seconds, is a ratio of two measurements that are taken in turn within one run, so that it
means the same on a slow machine as on a fast one. What is measured in processes of its own keeps this one small and its
modules unloaded.

Exit status: 0 every figure is within its bound, 1 one is not.
"""

import contextlib
import gc
import importlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FIRST_ADAMW = (
    "import torch, numpy\n"
    "torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=0.1, fused=True)\n"  # fused, as the experiment's
)


@dataclass(frozen=True)
class Figure:
    """A measured ratio and the most that it may be."""

    name: str
    measured: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the ratio is within its bound."""
        return self.measured <= self.bound


def seconds(action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the time that a call takes, by the clock on the wall or another one."""
    gc.collect()
    start = clock()
    action()
    return clock() - start


def cpu_seconds(action: Callable[[], object]) -> float:
    """Return the processor time that a call takes: all the time of one thread, without what others take meanwhile."""
    return seconds(action, time.process_time)


def median_ratio(measured: Callable[[], float], base: Callable[[], float], pairs: int) -> float:
    """Return the median of so many ratios, each of two measurements that follow one another."""
    return statistics.median(measured() / base() for _ in range(pairs))


def in_new_process(measure: Callable[[], float]) -> float:
    """Return what a function of this module measures in a process of its own, which imports this module afresh."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure).result()


def run_program(*arguments: str) -> int:
    """Run an interpreter to its end, and return its peak memory, in the system's unit.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return usage.ru_maxrss


def run_experiment_program(*arguments: str) -> int:
    """Run all of `experiment.py run` into a new directory, and return its peak memory."""
    with tempfile.TemporaryDirectory() as directory:
        return run_program("experiment.py", "run", "--output-dir", directory, *arguments)


def whole_run() -> Figure:
    """Compare a whole run with a process that only loads the libraries and makes a first optimizer."""
    ratio = median_ratio(
        lambda: seconds(run_experiment_program), lambda: seconds(lambda: run_program("-c", FIRST_ADAMW)), pairs=5
    )
    return Figure("whole run / imports and a first AdamW", ratio, 1.35)


def evaluations_over_bare_loop() -> float:
    """Return the cost of the 35 evaluations in relation to their micro-steps alone."""
    import experiment

    cfg = experiment.ExperimentConfig()

    def evaluations() -> None:
        for seed in experiment.SEEDS:
            for _ in experiment.evaluate_seed(seed, experiment.SCENARIOS, cfg):
                pass

    def bare_loop() -> None:
        for seed in experiment.SEEDS:
            job = experiment.make_job(seed, cfg)
            for _ in range(212):  # a reference of 36, sources of 15 and 16, five resumes of 21 and two of 20
                experiment.run_one_microstep(job)

    bare_loop()  # the first of everything costs more
    evaluations()
    return median_ratio(lambda: cpu_seconds(evaluations), lambda: cpu_seconds(bare_loop), pairs=9)


def evaluations() -> Figure:
    """Compare the 35 evaluations with a bare loop over as many micro-steps."""
    return Figure("35 evaluations / 1,060 bare micro-steps", in_new_process(evaluations_over_bare_loop), 2.0)


def many_seeds_over_few() -> float:
    """Return the cost of one of 40 seeds in relation to one of 5."""
    import experiment

    def seconds_per_seed(count: int) -> float:
        with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(None):
            return cpu_seconds(lambda: experiment.run_experiment(directory, range(count))) / count

    seconds_per_seed(1)  # the first of everything costs more
    return median_ratio(lambda: seconds_per_seed(40), lambda: seconds_per_seed(5), pairs=3)


def linearity() -> Figure:
    """Compare what a seed costs among many and among few."""
    return Figure("time of a seed, 40 seeds / 5 seeds", in_new_process(many_seeds_over_few), 1.1)


def memory() -> Figure:
    """Compare the peak memory of runs of many and of few seeds."""
    many, few = (run_experiment_program("--seeds", *map(str, range(count))) for count in (200, 5))
    return Figure("peak memory, 200 seeds / 5 seeds", many / few, 1.1)


def validation_over_imports() -> float:
    """Return what validating costs a run, its imports included, in relation to loading the libraries."""
    exec(FIRST_ADAMW, {})  # noqa: S102 -- the same lines as in the process that a whole run is compared with
    libraries = time.process_time()
    importing = cpu_seconds(lambda: (importlib.import_module("jsonschema"), importlib.import_module("referencing")))
    import experiment

    validate = experiment.require_valid

    def run(check: Callable[..., None]) -> None:
        experiment.require_valid = check
        with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(None):
            experiment.run_experiment(directory)

    run(validate)  # the first of everything costs more
    validating = statistics.median(
        cpu_seconds(lambda: run(validate)) - cpu_seconds(lambda: run(lambda *_args, **_options: None)) for _ in range(5)
    )
    return (importing + validating) / libraries


def validation() -> Figure:
    """Compare what validating adds to a run with the loading of the libraries."""
    return Figure("validation in a run / imports", in_new_process(validation_over_imports), 0.1)


def seconds_to_judge() -> float:
    """Return the processor time of judging the expected set against itself, once Python and jsonschema are loaded."""
    import verify

    return cpu_seconds(lambda: verify.verify(verify.EXPECTED, verify.EXPECTED, verify.SCHEMAS))


def judging() -> Figure:
    """Measure what `verify.py` takes for the default set, in seconds."""
    return Figure("judging the default set, in seconds", in_new_process(seconds_to_judge), 0.5)


def judging_many_over_few() -> float:
    """Return the cost of judging a run among 1,400 in relation to one among 35."""
    import verify

    def seconds_per_run(directory: str, runs: int) -> float:
        return cpu_seconds(lambda: verify.verify(directory, directory, verify.SCHEMAS)) / runs

    with tempfile.TemporaryDirectory() as few, tempfile.TemporaryDirectory() as many:
        run_program("experiment.py", "run", "--output-dir", few)
        run_program("experiment.py", "run", "--output-dir", many, "--seeds", *map(str, range(200)))
        return median_ratio(lambda: seconds_per_run(many, 1400), lambda: seconds_per_run(few, 35), pairs=3)


def judging_linearity() -> Figure:
    """Compare what judging a run costs among many and among few."""
    return Figure("judging a run, 200 seeds / 5 seeds", in_new_process(judging_many_over_few), 1.2)


SMALL_JOB = """
import torch
from resume_audit import Job

def make_job(seed, suspects=0):
    torch.manual_seed(seed)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    lost = {f"part_{index}": 0 for index in range(suspects)}

    def step():
        optimizer.zero_grad()
        loss = model(torch.ones(3, 4)).square().mean() * (1 + lost.get("part_7", 0) / 100)
        loss.backward()
        optimizer.step()
        for name in lost:
            lost[name] += 1
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer}, step)

def make_suspect(seed):
    return make_job(seed, 20)
"""
LARGE_JOB = """
import torch
from resume_audit import Job

def make_job(seed):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(*(torch.nn.Linear(1000, 1000) for _ in range(10)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    inputs = torch.randn(256, 1000)

    def step():
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer}, step)
"""


def seconds_to_audit(factory: str) -> float:
    """Return the time that a whole audit of a small job takes, its servers' imports done before."""
    import resume_audit

    with tempfile.TemporaryDirectory() as directory, resume_audit.keep_servers():
        job = Path(directory) / "job.py"
        job.write_text(SMALL_JOB, encoding="utf-8")

        def audit() -> resume_audit.Report:
            return resume_audit.audit(str(job), factory=factory, steps=12, interrupt=[1, 6, 11], jobs=2)

        verdict = {"make_job": "EXACT", "make_suspect": "DIVERGES"}[factory]
        if audit().verdict != verdict:  # the first of everything costs more
            raise RuntimeError(f"{factory} is not {verdict}")
        return statistics.median(seconds(audit) for _ in range(5))


def seconds_to_audit_exact() -> float:
    """Return the time of an audit without a diagnosis."""
    return seconds_to_audit("make_job")


def seconds_to_audit_suspects() -> float:
    """Return the time of an audit that has to find one of 20 suspects, at each of 3 points."""
    return seconds_to_audit("make_suspect")


def auditing() -> Figure:
    """Measure the audit of a job of 12 steps and 3 interruption points beyond the imports."""
    return Figure("audit of a small job, in seconds", in_new_process(seconds_to_audit_exact), 1.5)


def diagnosing() -> Figure:
    """Measure what a diagnosis of 20 suspects adds to the audit of a small job."""
    added = in_new_process(seconds_to_audit_suspects) - in_new_process(seconds_to_audit_exact)
    return Figure("diagnosis of 20 suspects, in seconds", added, 3.0)


def large_job() -> dict[str, Any]:
    """Return the globals of a job with a model of 10 million parameters."""
    made: dict[str, Any] = {}
    exec(LARGE_JOB, made)  # noqa: S102 -- the same lines as in the file that is audited
    return made


def recording_over_plain() -> float:
    """Return what an outcome after each of 20 steps adds, in relation to the steps."""
    from resume_audit import run

    job = large_job()["make_job"](0)

    def steps(*, observed: bool) -> None:
        for _ in range(20):
            job.step()
            if observed:
                run.component_digests(job)

    steps(observed=True)  # the first of everything costs more
    observed, plain = (lambda: seconds(lambda: steps(observed=True))), (lambda: seconds(lambda: steps(observed=False)))
    return median_ratio(observed, plain, pairs=5) - 1


def recording() -> Figure:
    """Compare the recording of outcomes with the steps of a model of 10 million parameters."""
    return Figure("recording 20 outcomes / 20 plain steps", in_new_process(recording_over_plain), 0.3)


def plain_peak() -> float:
    """Return the peak memory of 20 plain steps of the large job."""
    return peak_of_steps(observed=False)


def observed_peak() -> float:
    """Return the peak memory of 20 steps of the large job with an outcome after each."""
    return peak_of_steps(observed=True)


def peak_of_steps(*, observed: bool) -> float:
    """Return the peak resident memory of this process after 20 steps, in copies of the large job's state."""
    from resume_audit import run

    job = large_job()["make_job"](0)
    for _ in range(20):
        job.step()
        if observed:
            run.component_digests(job)
    parameters = sum(parameter.nbytes for parameter in job.components["model"].parameters())
    copies_kept = 3  # the parameters, and of each its two moments
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(kibibytes * 1024 / (parameters * copies_kept))


def recording_memory() -> Figure:
    """Measure the memory that recording adds to a plain run, in copies of the state."""
    added = in_new_process(observed_peak) - in_new_process(plain_peak)
    return Figure("memory of recording, in copies of the state", added, 1.0)


def interruption_over_plain() -> float:
    """Return what one more interruption point costs an audit, in relation to a plain run of the job."""
    import resume_audit

    job = large_job()["make_job"](0)
    job.step()

    def plain() -> None:
        for _ in range(20):
            job.step()

    with tempfile.TemporaryDirectory() as directory, resume_audit.keep_servers():
        file = Path(directory) / "job.py"
        file.write_text(LARGE_JOB, encoding="utf-8")

        def audit(*points: int) -> float:
            return seconds(lambda: resume_audit.audit(str(file), steps=20, interrupt=points, jobs=1))

        audit(10)  # the first of everything costs more
        return (audit(5, 10, 15) - audit(10)) / 2 / seconds(plain)


def interruption() -> Figure:
    """Compare an interruption point with a plain run of the job."""
    return Figure("an interruption point / a plain run", in_new_process(interruption_over_plain), 3.0)


def fixture_matrix() -> Figure:
    """Measure the audit of the whole fixture, 37 points and all components, imports included."""
    taken = seconds(lambda: run_program("-m", "resume_audit", "examples/experiment_job.py", "--matrix", "--jobs", "2"))
    return Figure("matrix of the fixture, in seconds", taken, 60.0)


FIGURES = (
    *(whole_run, evaluations, linearity, memory, validation, judging, judging_linearity),
    *(auditing, diagnosing, recording, recording_memory, interruption, fixture_matrix),
)


def main() -> int:
    """Print a row for each figure as it comes; return 1 if one is not within its bound."""
    print(f"{'figure':<42}  {'measured':>8}  {'bound':>5}  verdict")
    all_hold = True
    for measure in FIGURES:
        figure = measure()
        verdict = "within" if figure.holds else "MISSED"
        print(f"{figure.name:<42}  {figure.measured:>8.2f}  {figure.bound:>5.2f}  {verdict}", flush=True)
        all_hold &= figure.holds
    return 0 if all_hold else 1


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))  # what `in_new_process` starts inherits it
    sys.exit(main())
