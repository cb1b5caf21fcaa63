"""Measure speed and memory, and print each figure beside its bound: `make bench`, or `python tests/bench.py`.

Each figure is a ratio of two measurements that are taken in turn within one run, so that it means the same on a slow
machine as on a fast one. What is measured in processes of its own keeps this one small and its modules unloaded.

Exit status: 0 every figure is within its bound, 1 one is not.
"""

import contextlib
import gc
import importlib
import os
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
    """Measure what `verify.py` takes for the default set, in seconds: the one figure that is no ratio."""
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


FIGURES = (whole_run, evaluations, linearity, memory, validation, judging, judging_linearity)


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
