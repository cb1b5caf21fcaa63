"""What `run_experiment` leaves in its output directory, whatever happens on the way."""

import csv
import io
import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import experiment

SIX_FILES = {
    *("results.csv", "raw-output.txt", "step-traces.json"),
    *("run-summary.json", "environment.json", "checkpoint-schema.json"),
}
CSV_COLUMNS = [
    *("seed", "scenario", "checkpoint_position", "exact_resume", "model_exact", "optimizer_exact", "scheduler_exact"),
    *("stream_exact", "rng_exact", "gradients_exact", "next_batch_match", "max_parameter_abs_error"),
    *("max_optimizer_tensor_abs_error", "learning_rate_error", "first_divergent_optimizer_step"),
    *("interrupt_optimizer_step", "interrupt_microstep_in_accumulation", "reference_final_model_hash"),
    "resumed_final_model_hash",
]
Result = dict[str, Any]
Results = dict[tuple[int, str], Result]


def contents(directory: Path) -> dict[str, bytes]:
    """Return all that a directory holds, hidden entries too."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def load(path: Path) -> Any:
    """Return what a file of strict JSON holds; NaN and the infinities, which Python would read, are refused."""

    def refuse(name: str) -> None:
        pytest.fail(f"{name} in {path.name}")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


@pytest.fixture
def replayed(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runs take the results of the session's one evaluation, and the environment as it is now."""

    def evaluate_seed(seed: int, scenarios: Iterable[str], _cfg: experiment.ExperimentConfig) -> Iterator[Result]:
        return (results[seed, name] for name in scenarios)

    environment = experiment.runtime_environment()
    monkeypatch.setattr(experiment, "evaluate_seed", evaluate_seed)
    monkeypatch.setattr(experiment, "runtime_environment", lambda: environment)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the directory of a whole run of the defaults, with nothing replaced."""
    directory = tmp_path_factory.mktemp("published")
    experiment.run_experiment(directory)
    return directory


class TestArtifacts:
    """The six files of a whole run."""

    def test_six_files_are_left(self, published: Path) -> None:
        """The directory holds the six files and nothing else."""
        assert {path.name for path in published.iterdir()} == SIX_FILES

    @pytest.mark.parametrize("name", sorted(SIX_FILES))
    def test_text_form(self, name: str, published: Path) -> None:
        """Each file is UTF-8 with LF line ends and one final newline."""
        data = (published / name).read_bytes()

        assert b"\r" not in data
        assert data.endswith(b"\n")
        assert not data.endswith(b"\n\n")
        assert data.decode("utf-8")

    @pytest.mark.parametrize("name", sorted(name for name in SIX_FILES if name.endswith(".json")))
    def test_json_form(self, name: str, published: Path) -> None:
        """Each JSON file is strict and indented by 2."""
        value = load(published / name)

        assert (published / name).read_text(encoding="utf-8") == json.dumps(value, indent=2) + "\n"

    def test_csv_has_a_row_for_each_result(self, published: Path, results: Results) -> None:
        """The columns are the contract's; booleans are True/False, floats exact, an absent step is empty."""
        with (published / "results.csv").open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)

        assert header == CSV_COLUMNS
        assert rows == [
            ["" if (v := result[c]) is None else str(v) for c in CSV_COLUMNS] for result in results.values()
        ]
        for row, result in zip(rows, results.values(), strict=True):
            assert float(row[header.index("max_parameter_abs_error")]) == result["max_parameter_abs_error"]

    def test_raw_output_has_the_lines(self, published: Path, results: Results) -> None:
        """raw-output.txt has one line for each result, in run order."""
        lines = (published / "raw-output.txt").read_text(encoding="utf-8").splitlines()

        assert [line.split()[:2] for line in lines] == [[f"seed={s}", f"scenario={name}"] for s, name in results]

    def test_step_traces_have_the_traces(self, published: Path, results: Results) -> None:
        """step-traces.json has, for each result, seed, scenario and step trace, in that order."""
        traces = load(published / "step-traces.json")

        keys = ["seed", "scenario", "step_trace"]
        assert [list(trace) for trace in traces] == [keys] * 35
        assert traces == [{key: result[key] for key in keys} for result in results.values()]
        assert list(traces[0]["step_trace"][0]) == [
            *("logical_step", "actual_optimizer_step_counter", "model_exact", "max_parameter_abs_error"),
            *("actual_learning_rate", "expected_learning_rate", "learning_rate_error", "last_batch_ids"),
            *("expected_last_batch_ids", "batch_match"),
        ]

    def test_summary_sums_up(self, published: Path, results: Results) -> None:
        """run-summary.json has its keys in order, and says of each scenario what the results say."""
        summary = load(published / "run-summary.json")

        assert list(summary) == [
            *("status", "experiment", "configuration", "seeds", "scenarios", "run_count", "scenario_summary"),
            *("acceptance_checks", "claim_boundary"),
        ]
        assert (summary["status"], summary["experiment"]) == ("PASS", "checkpoint_resume_equivalence")
        assert summary["configuration"]["dataset_seed"] == 20260717
        assert list(summary["configuration"]) == list(experiment.ExperimentConfig.__dataclass_fields__)
        assert (summary["seeds"], summary["run_count"]) == ([11, 17, 29, 47, 83], 35)
        assert summary["scenarios"] == list(summary["scenario_summary"]) == list(experiment.SCENARIOS)
        assert summary["acceptance_checks"] == dict.fromkeys(summary["acceptance_checks"], True)
        assert list(summary["acceptance_checks"]) == [
            *("full_boundary_all_exact", "full_mid_accumulation_all_exact", "model_optimizer_only_all_fail"),
            *("omit_rng_all_fail", "omit_stream_all_fail", "omit_scheduler_all_fail", "mid_without_gradients_all_fail"),
        ]
        for name, entry in summary["scenario_summary"].items():
            of_scenario = [results[seed, name] for seed in summary["seeds"]]
            errors = sorted(result["max_parameter_abs_error"] for result in of_scenario)
            exact = name.startswith("full")
            assert list(entry.items()) == [
                ("runs", 5),
                ("exact_runs", 5 if exact else 0),
                ("exact_rate", 1.0 if exact else 0.0),
                ("max_parameter_abs_error_min", errors[0]),
                ("max_parameter_abs_error_median", errors[2]),
                ("max_parameter_abs_error_max", errors[4]),
                ("first_divergent_steps", [result["first_divergent_optimizer_step"] for result in of_scenario]),
                ("all_next_batch_match", name not in {"model_optimizer_only", "omit_stream"}),
            ]

    def test_environment_says_what_the_numbers_depend_on(self, published: Path) -> None:
        """environment.json has its keys in order, and one thread and deterministic algorithms in force."""
        environment = load(published / "environment.json")

        assert list(environment) == [
            *("python", "platform", "torch", "numpy", "torch_num_threads", "deterministic_algorithms_enabled"),
            *("device", "machine", "libc", "cpu_capability", "numeric_pins", "numeric_fingerprint"),
        ]
        assert environment["torch_num_threads"] == 1
        assert environment["deterministic_algorithms_enabled"] is True
        assert environment["device"] == "cpu"
        assert list(environment["numeric_pins"]) == ["ATEN_CPU_CAPABILITY", "MKL_CBWR"]
        assert len(set(environment["numeric_fingerprint"].values())) == 8

    def test_checkpoint_schema_makes_the_claims(self, published: Path) -> None:
        """checkpoint-schema.json makes the contract's claims, in its order."""
        assert list(load(published / "checkpoint-schema.json").items()) == [
            ("successful_boundary_payload_fields", ["model", "optimizer", "scheduler", "rng", "stream", "counters"]),
            ("independently_ablated_boundary_fields", ["scheduler", "rng", "stream"]),
            ("combined_anti_control_omissions", ["scheduler", "rng", "stream", "counters"]),
            ("successful_mid_accumulation_additional_fields", ["gradients"]),
            ("independently_ablated_mid_accumulation_fields", ["gradients"]),
            (
                "retained_but_not_independently_ablated",
                ["counters", "microstep_in_accumulation", "global_microstep"],
            ),
            ("rng_components_in_fixture", ["python", "numpy", "torch_cpu"]),
            (
                "stream_components_in_fixture",
                ["epoch", "cursor", "current_permutation", "permutation_generator_state"],
            ),
            (
                "comparison_surface",
                ["model", "optimizer", "scheduler", "stream", "rng", "gradients", "next_batch_ids"],
            ),
            (
                "not_claimed",
                [
                    *("CUDA RNG capture", "per-rank distributed state", "FSDP optimizer re-sharding"),
                    *("DataLoader worker queues", "elastic world-size changes"),
                ],
            ),
        ]

    def test_second_run_writes_the_same_bytes(self, published: Path, tmp_path: Path) -> None:
        """What was trained before in the same process does not matter: the same bytes, for a part of the seeds too."""
        experiment.run_experiment(tmp_path, [11])

        lines = (published / "results.csv").read_bytes().splitlines(keepends=True)
        assert (tmp_path / "results.csv").read_bytes() == b"".join(lines[:8])
        for name in ("environment.json", "checkpoint-schema.json"):
            assert (tmp_path / name).read_bytes() == (published / name).read_bytes()


class TestSelection:
    """The arguments of `run_experiment`."""

    @pytest.mark.usefixtures("replayed")
    @pytest.mark.parametrize("kind", [str, Path])
    def test_takes_generators_and_any_path(self, kind: Callable[[Path], str | Path], tmp_path: Path) -> None:
        """Iterables are read once, the path may be text, and the returned summary is the published one."""
        directory = tmp_path / "new" / "results"

        summary = experiment.run_experiment(
            kind(directory), (seed for seed in (83, 11)), (name for name in ("omit_rng", "full_boundary"))
        )

        assert (summary["seeds"], summary["scenarios"]) == ([83, 11], ["omit_rng", "full_boundary"])
        assert summary == load(directory / "run-summary.json")
        assert list(summary["acceptance_checks"]) == ["full_boundary_all_exact", "omit_rng_all_fail"]
        rows = (directory / "results.csv").read_text(encoding="utf-8").splitlines()[1:]
        assert [row.split(",")[:2] for row in rows] == [
            *(["83", "omit_rng"], ["83", "full_boundary"], ["11", "omit_rng"], ["11", "full_boundary"])
        ]

    @pytest.mark.parametrize(
        ("seeds", "scenarios", "message"),
        [
            ([], ["omit_rng"], "seeds must not be empty"),
            ([11], [], "scenarios must not be empty"),
            ([11, 17, 11], ["omit_rng"], "seeds must not repeat 11"),
            ([11], ["omit_rng", "omit_rng"], "scenarios must not repeat 'omit_rng'"),
            ([11], ["omit_rng", "omit_all"], "unknown scenario 'omit_all'"),
            ([11], "omit_rng", "scenarios must be a collection, not 'omit_rng'"),
            ([11], [None], "unknown scenario None"),
            ([-1], ["omit_rng"], "not -1"),
            ([2**32], ["omit_rng"], "not 4294967296"),
            ([11.0], ["omit_rng"], "not 11.0"),
            (["11"], ["omit_rng"], "not '11'"),
            ([True], ["omit_rng"], "not True"),
            (11, ["omit_rng"], "seeds must be a collection, not 11"),
        ],
        ids=lambda value: str(value) if isinstance(value, str) and " " in value else "",
    )
    def test_refuses_what_is_none(self, seeds: Any, scenarios: Any, message: str, tmp_path: Path) -> None:
        """Empty, repeated and unknown seeds or scenarios are a `ValueError` that names them, and nothing is made."""
        with pytest.raises(ValueError, match=message):
            experiment.run_experiment(tmp_path / "results", seeds, scenarios)

        assert list(tmp_path.iterdir()) == []

    def test_lines_appear_as_results_come(
        self, results: Results, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """When a result is asked for, the lines of all those before have left the program, and nothing is published."""
        seen = []
        pipe = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(pipe), encoding="utf-8"))

        def evaluate_seed(seed: int, scenarios: Iterable[str], _cfg: object) -> Iterator[Result]:
            for name in scenarios:
                seen.append(pipe.getvalue().count(b"\n"))
                assert not SIX_FILES.intersection(path.name for path in tmp_path.iterdir())
                yield results[seed, name]

        monkeypatch.setattr(experiment, "evaluate_seed", evaluate_seed)

        experiment.run_experiment(tmp_path, [11], ["omit_rng", "omit_stream"])

        assert seen == [0, 1]
        assert pipe.getvalue().startswith((tmp_path / "raw-output.txt").read_bytes())

    def test_nothing_is_trained_twice(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """A seed costs one reference, one source for each position and one resume for each scenario."""
        jobs: list[experiment.TrainingJob] = []
        make_job = experiment.make_job

        def counted(*args: Any) -> experiment.TrainingJob:
            jobs.append(make_job(*args))
            return jobs[-1]

        monkeypatch.setattr(experiment, "make_job", counted)

        experiment.run_experiment(tmp_path, [11])

        # All of it is 36 micro-steps, one source 15 or 16, a resume all but those; without counters it is 21 from 0.
        assert sorted(job.global_microstep for job in jobs) == [15, 16, 21, *[36] * 7]


class TestFailure:
    """Runs that must not say PASS."""

    @pytest.fixture
    def failing(self, results: Results, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Turn two facts around, and return the names of the checks that must fail then."""

        def evaluate_seed(seed: int, scenarios: Iterable[str], _cfg: object) -> Iterator[Result]:
            for name in scenarios:
                turned = (seed, name) in {(17, "full_boundary"), (11, "omit_stream")}
                if not turned:
                    yield results[seed, name]
                elif results[seed, name]["exact_resume"]:
                    yield results[seed, name] | {"exact_resume": False}
                else:
                    yield results[seed, "full_boundary"] | {"scenario": name}

        monkeypatch.setattr(experiment, "evaluate_seed", evaluate_seed)
        return ["full_boundary_all_exact", "omit_stream_all_fail"]

    def test_failed_checks_are_published_and_raised(self, failing: list[str], tmp_path: Path) -> None:
        """One run of many against expectation fails the check: all six files are published, with status FAIL."""
        with pytest.raises(experiment.AcceptanceError) as raised:
            experiment.run_experiment(tmp_path)

        summary = load(tmp_path / "run-summary.json")
        assert isinstance(raised.value, RuntimeError)
        assert str(raised.value) == f"acceptance checks failed: {', '.join(failing)}"
        assert summary["status"] == "FAIL"
        assert [name for name, passed in summary["acceptance_checks"].items() if not passed] == failing
        assert {path.name for path in tmp_path.iterdir()} == SIX_FILES

    def test_main_names_failed_checks(
        self, failing: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """`main` returns 1, prints the checks as ever, and names those that failed on standard error."""
        status = experiment.main(["run", "--output-dir", str(tmp_path)])

        out, err = capsys.readouterr()
        assert status == 1
        assert err == f"experiment.py: acceptance checks failed: {', '.join(failing)}\n"
        checks = load(tmp_path / "run-summary.json")["acceptance_checks"]
        assert out.splitlines()[-1] == json.dumps(checks, sort_keys=True)

    @pytest.mark.parametrize(
        ("cfg", "microstep"),
        [
            ({"learning_rate": 1e38}, 4),
            ({"learning_rate": 1e20}, 7),
            ({"learning_rate": 1e38, "total_optimizer_steps": 1, "boundary_interrupt_step": 0}, 3),
        ],
        ids=["at-once", "in-time", "in-the-last-update"],
    )
    def test_diverged_training_publishes_nothing(self, cfg: dict[str, Any], microstep: int, tmp_path: Path) -> None:
        """A loss or parameter that is not finite stops the run, naming the place; what was there before stays."""
        cfg = {"mid_interrupt_completed_steps": 0} | cfg
        (tmp_path / "run-summary.json").write_text("earlier", encoding="utf-8")

        with pytest.raises(experiment.TrainingDivergedError) as raised:
            experiment.run_experiment(tmp_path, [17], ["omit_rng"], experiment.ExperimentConfig(**cfg))

        assert isinstance(raised.value, RuntimeError)
        assert f"seed=17 scenario=omit_rng microstep={microstep}:" in str(raised.value)
        assert contents(tmp_path) == {"run-summary.json": b"earlier"}
        assert [path.name for path in tmp_path.iterdir()] == ["run-summary.json"]

    def test_main_names_the_place_of_the_divergence(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """`main` returns 1 for a diverged training, with one line on standard error."""
        monkeypatch.setattr(experiment, "ExperimentConfig", partial(experiment.ExperimentConfig, learning_rate=1e38))

        status = experiment.main(["run", "--output-dir", str(tmp_path)])

        out, err = capsys.readouterr()
        assert (status, out) == (1, "")
        assert err.startswith("experiment.py: training diverged: seed=11 scenario=full_boundary microstep=4: ")
        assert err.count("\n") == 1
        assert list(tmp_path.iterdir()) == []

    def test_number_that_is_not_finite_is_not_published(
        self, results: Results, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """JSON has no infinity: rather than write one, the run ends and publishes nothing."""

        def evaluate_seed(seed: int, scenarios: Iterable[str], _cfg: object) -> Iterator[Result]:
            yield from (results[seed, name] | {"max_parameter_abs_error": math.inf} for name in scenarios)

        monkeypatch.setattr(experiment, "evaluate_seed", evaluate_seed)

        with pytest.raises(experiment.ArtifactError, match="max_parameter_abs_error does not fit its schema"):
            experiment.run_experiment(tmp_path, [11], ["omit_rng"])

        assert list(tmp_path.iterdir()) == []


# Python's calls of C code that may leave a trace on the disk. An end before each one, when all that came earlier has
# its effect, is an end at every point.
FILE_OPERATIONS = {
    *("open", "write", "writelines", "flush", "close", "fsync", "fdatasync", "truncate", "mkdir", "rmdir", "unlink"),
    *("remove", "rename", "replace", "link", "symlink", "copy_file_range", "sendfile", "chmod", "utime", "flock"),
    "fstat",  # stands in for fsync
}
EARLIER, LATER = [11, 17], [29]
SOME = ["full_boundary", "omit_stream"]


def end_at(point: int, end: Callable[[], None]) -> list[str]:
    """Call `end` before the file operation of the given number, counted from now on; return those passed so far."""
    passed: list[str] = []

    def profile(_frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and function.__name__ in FILE_OPERATIONS:
            passed.append(function.__name__)
            if len(passed) == point:
                end()

    sys.setprofile(profile)
    return passed


def kill() -> None:
    """End this process on the spot, without any clearing up."""
    os.kill(os.getpid(), signal.SIGKILL)


def terminate() -> None:
    """End this process as the handler of SIGINT and SIGTERM does."""
    sys.exit(130)


def run_to_its_end(directory: Path, point: int, end: Callable[[], None]) -> tuple[int, int]:
    """Run in a forked process that ends at a point; return its wait status and how many it passed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            passed = end_at(point, end)
            try:
                experiment.run_experiment(directory, LATER, SOME)
            finally:
                sys.setprofile(None)
            os.write(writer, str(len(passed)).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    points = os.read(reader, 20)
    os.close(reader)
    return status, int(points or 0)


@pytest.mark.usefixtures("replayed")
# The child of the fork runs in one thread alone, and needs no lock that another thread may have held.
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("end", "earlier"),
    [(kill, True), (kill, False), (terminate, True)],
    ids=["killed-over-an-earlier-set", "killed-in-a-new-directory", "terminated-over-an-earlier-set"],
)
def test_end_at_any_point_leaves_no_mixture(
    end: Callable[[], None],
    earlier: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A run that ends between any two file operations leaves the earlier six, no summary, or the new six files.

    The next run then succeeds, and leaves the six files alone.
    """
    # The system keeps what a killed process wrote: waiting for the disk matters only to a power failure.
    monkeypatch.setattr(os, "fsync", os.fstat)
    experiment.run_experiment(tmp_path / "earlier", EARLIER, SOME)
    experiment.run_experiment(tmp_path / "later", LATER, SOME)
    before, after = contents(tmp_path / "earlier"), contents(tmp_path / "later")
    directory = tmp_path / "results"

    def prepare() -> None:
        if earlier:
            directory.mkdir(exist_ok=True)
            for name, data in before.items():
                (directory / name).write_bytes(data)

    prepare()
    status, points = run_to_its_end(directory, 0, end)
    assert (status, contents(directory)) == (0, after)
    assert points > 30
    seen = []
    for point in range(1, points + 1):
        for path in directory.iterdir():
            path.unlink()
        if not earlier:
            directory.rmdir()
        prepare()

        status, _ = run_to_its_end(directory, point, end)

        left = contents(directory) if directory.exists() else {}
        visible = {name: data for name, data in left.items() if not name.startswith(".")}
        seen.append("before" if visible == before else "after" if visible == after else "no summary")
        assert status == signal.SIGKILL if end is kill else os.waitstatus_to_exitcode(status) == 1, point
        assert seen[-1] != "no summary" or "run-summary.json" not in visible, point

        experiment.run_experiment(directory, LATER, SOME)
        assert contents(directory) == after, point
        assert {path.name for path in directory.iterdir()} == SIX_FILES, point
        capsys.readouterr()
    # Each of the three occurs, in this order and once: earlier set (if there was one), no summary, new set.
    assert [kind for kind, last in zip(seen, [None, *seen], strict=False) if kind != last] == [
        *(["before"] if earlier else []),
        *("no summary", "after"),
    ]


@pytest.mark.usefixtures("replayed")
def test_files_are_on_the_disk_before_they_are_in_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A power failure finds no mixture either: files are synchronised before their renaming, the summary comes last.

    The directory is synchronised when the old summary is gone, when five files are in place, and at the end.
    """
    experiment.run_experiment(tmp_path, EARLIER, SOME)
    log: list[tuple[str, int]] = []
    fsync, replace, unlink = os.fsync, os.replace, os.unlink

    def logged_fsync(descriptor: int) -> None:
        log.append(("fsync", os.fstat(descriptor).st_ino))
        fsync(descriptor)

    def logged_replace(source: Path, target: Path) -> None:
        log.append(("replace", source.stat().st_ino))
        replace(source, target)

    def logged_unlink(path: Path, **options: Any) -> None:
        if str(path) == str(tmp_path / "run-summary.json"):
            log.append(("unlink", 0))
        unlink(path, **options)

    monkeypatch.setattr(os, "fsync", logged_fsync)
    monkeypatch.setattr(os, "replace", logged_replace)
    monkeypatch.setattr(os, "unlink", logged_unlink)

    experiment.run_experiment(tmp_path, LATER, SOME)

    monkeypatch.undo()
    folder = ("fsync", tmp_path.stat().st_ino)
    inodes = {path.name: path.stat().st_ino for path in tmp_path.iterdir()}
    summary = inodes.pop("run-summary.json")
    for inode in [*inodes.values(), summary]:
        assert log.index(("fsync", inode)) < log.index(("unlink", 0)) < log.index(("replace", inode))
    rest = log[log.index(("unlink", 0)) :]
    assert rest[:2] == [("unlink", 0), folder]
    assert {*rest[2:7]} == {("replace", inode) for inode in inodes.values()}
    assert rest[7:] == [folder, ("replace", summary), folder]


@pytest.mark.usefixtures("replayed")
def test_what_others_keep_in_the_directory_stays(tmp_path: Path) -> None:
    """Files that are no artifacts are left alone; a staging folder left behind by a killed run is cleared away."""
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    alike = tmp_path / f"{experiment.STAGING_PREFIX}mine"
    alike.mkdir()
    (alike / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / f"{experiment.STAGING_PREFIX}link").symlink_to(alike)
    (tmp_path / f"{experiment.STAGING_PREFIX}left").mkdir()
    (tmp_path / f"{experiment.STAGING_PREFIX}left" / "results.csv").write_text("half", encoding="utf-8")

    experiment.run_experiment(tmp_path, LATER, SOME)

    link = f"{experiment.STAGING_PREFIX}link"
    assert {path.name for path in tmp_path.iterdir()} == {*SIX_FILES, "notes.txt", alike.name, link}
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / link / "notes.txt").read_text(encoding="utf-8") == "mine"
