"""The command line: what each command prints, and what it answers to bad input, a full disk, a pipe or a signal.

Processes of their own, a few seconds each, are started two at a time when the first test here begins.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import experiment

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = (sys.executable, str(ROOT / "experiment.py"))
SIX_FILES = {
    *("results.csv", "raw-output.txt", "step-traces.json"),
    *("run-summary.json", "environment.json", "checkpoint-schema.json"),
}
SEEDS = ["11", "17", "29", "47", "83"]
# Scenario: exact, first divergent update, the next batch matches, error of the final learning rate.
FACTS = {
    "full_boundary": (True, None, True, 0.0),
    "model_optimizer_only": (False, 6, False, 4.41e-3),
    "omit_rng": (False, 6, True, 0.0),
    "omit_stream": (False, 6, False, 0.0),
    "omit_scheduler": (False, 9, True, 4.41e-3),
    "full_mid_accumulation": (True, None, True, 0.0),
    "mid_without_gradients": (False, 6, True, 0.0),
}
PARAMETER_ERRORS_OF_SEED_11 = {
    "full_boundary": 0.0,
    "model_optimizer_only": 6.3974e-2,
    "omit_rng": 7.1138e-2,
    "omit_stream": 6.5703e-2,
    "omit_scheduler": 6.0648e-3,
    "full_mid_accumulation": 0.0,
    "mid_without_gradients": 1.7922e-2,
}
LINE = re.compile(
    r"seed=(?P<seed>\d+) scenario=(?P<scenario>\w+) exact=(?P<exact>true|false) "
    r"first_divergent_step=(?P<first>\d+|None) max_param_error=(?P<error>\d\.\d{9}e[+-]\d\d) "
    r"next_batch_match=(?P<next_batch>true|false) lr_error=(?P<lr_error>\d\.\d{9}e[+-]\d\d)"
)
ALL_HOLD = (
    '{"full_boundary_all_exact": true, "full_mid_accumulation_all_exact": true, '
    '"mid_without_gradients_all_fail": true, "model_optimizer_only_all_fail": true, "omit_rng_all_fail": true, '
    '"omit_scheduler_all_fail": true, "omit_stream_all_fail": true}'
)


@dataclass(frozen=True)
class Ended:
    """How a process ended, and the directory that it had to itself."""

    status: int
    out: str
    err: str
    directory: Path

    @property
    def results(self) -> Path:
        """The output directory of a `run`."""
        return self.directory / "results"


IN_BACKGROUND: list[Callable[[Path], Ended]] = []
Outcome = Callable[[Callable[[Path], Ended]], Ended]


def in_background(function: Callable[[Path], Ended]) -> Callable[[Path], Ended]:
    """Have a function called early, with a directory of its own; tests ask the fixture `outcome` for its result."""
    IN_BACKGROUND.append(function)
    return function


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """Give what a function marked with `in_background` returned, once it has."""
    with ThreadPoolExecutor(2) as pool:
        futures = {call: pool.submit(call, tmp_path_factory.mktemp(call.__name__)) for call in IN_BACKGROUND}
        yield lambda call: futures[call].result()
        for future in futures.values():
            future.cancel()


def ended(directory: Path, *command: str, prefix: Sequence[str] = (), **variables: str) -> Ended:
    """Run the program in a directory to its end, with none of the variables that it sets itself."""
    kept = {name: value for name, value in os.environ.items() if name not in experiment.NUMERIC_PINS}
    process = subprocess.run(
        [*prefix, *PROGRAM, *command],
        cwd=directory,
        env=kept | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return Ended(process.returncode, process.stdout, process.stderr, directory)


def begun(directory: Path) -> tuple["subprocess.Popen[bytes]", str]:
    """Start a run that is far from its end when its first line, which is returned too, has come."""
    process = subprocess.Popen(
        [*PROGRAM, "run", "--output-dir", "results", "--seeds", *map(str, range(1000))],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().decode()


def publish_earlier_set(directory: Path) -> None:
    """Put six files where a run would replace them."""
    (directory / "results").mkdir()
    for name in SIX_FILES:
        (directory / "results" / name).write_text(f"earlier {name}\n", encoding="utf-8")


def contents(directory: Path) -> dict[str, bytes]:
    """Return all that a directory holds, hidden entries too."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def assert_earlier_set(results: Path) -> None:
    """Assert that a directory holds the earlier six files and nothing else."""
    assert contents(results) == {name: f"earlier {name}\n".encode() for name in SIX_FILES}
    assert {path.name for path in results.iterdir()} == SIX_FILES


def columns(lines: list[str]) -> list[list[str]]:
    """Return the cells of a table, header first, and assert that every column is aligned to the left."""
    rows = [line.split() for line in lines]
    for index in range(len(rows[0])):
        (start,) = {[match.start() for match in re.finditer(r"\S+", line)][index] for line in lines}
        assert all(line[start - 1 : start] in {"", " "} for line in lines)
    return rows


class TestRun:
    """`run`, the whole of it."""

    @staticmethod
    @in_background
    def whole_run(directory: Path) -> Ended:
        """Run everything into a directory that is not there yet, named relative to the working directory."""
        return ended(directory, "run", "--output-dir", "deep/results", LC_ALL="C", PYTHONHASHSEED="1")

    @staticmethod
    @in_background
    def run_with_closed_output(directory: Path) -> Ended:
        """Run everything in other surroundings, over an earlier set, with standard output closed."""
        publish_earlier_set(directory)
        prefix = ("sh", "-c", 'exec "$@" >&-', "sh")
        surroundings = {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "OMP_NUM_THREADS": "3"}
        return ended(directory, "run", "--output-dir", "results", prefix=prefix, **surroundings)

    def test_prints_a_line_for_each_combination_and_then_the_checks(self, outcome: Outcome) -> None:
        """35 lines in the order of seeds and scenarios, then one JSON object; nothing on standard error; status 0."""
        run = outcome(self.whole_run)

        *lines, checks = run.out.splitlines()
        assert (run.status, run.err) == (0, "")
        assert checks == ALL_HOLD
        matches = [match for match in map(LINE.fullmatch, lines) if match]
        assert len(matches) == len(lines) == 35
        assert [(m["seed"], m["scenario"]) for m in matches] == [(seed, name) for seed in SEEDS for name in FACTS]

    def test_shows_what_a_correct_build_shows(self, outcome: Outcome) -> None:
        """The discrete facts hold for every seed, exact runs have errors of exactly 0, seed 11 has the known errors."""
        for line in outcome(self.whole_run).out.splitlines()[:-1]:
            match = LINE.fullmatch(line)
            assert match, line
            exact, first, next_batch, lr_error = FACTS[match["scenario"]]
            assert match["exact"] == ("true" if exact else "false"), line
            assert match["first"] == str(first), line
            assert match["next_batch"] == ("true" if next_batch else "false"), line
            assert match["lr_error"] == f"{lr_error:.9e}", line
            assert (match["error"] == "0.000000000e+00") is exact, line
            if match["seed"] == "11":
                # To five digits on x86-64; another architecture computes other last bits.
                assert float(match["error"]) == pytest.approx(PARAMETER_ERRORS_OF_SEED_11[match["scenario"]], rel=1e-4)

    def test_writes_the_six_files(self, outcome: Outcome) -> None:
        """The directory is made, with its parents, and holds the six files alone; the lines are in raw-output.txt."""
        run = outcome(self.whole_run)

        files = contents(run.directory / "deep" / "results")
        assert set(files) == SIX_FILES == {path.name for path in (run.directory / "deep" / "results").iterdir()}
        assert files["raw-output.txt"].decode() == run.out.removesuffix(ALL_HOLD + "\n")
        assert json.loads(files["run-summary.json"])["status"] == "PASS"

    def test_is_pinned_without_any_help(self, outcome: Outcome) -> None:
        """A bare `python experiment.py run` sets both variables, torch obeys, and environment.json says so."""
        run = outcome(self.whole_run)

        environment = json.loads((run.directory / "deep" / "results" / "environment.json").read_text(encoding="utf-8"))
        assert environment["numeric_pins"] == {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE"}
        assert environment["cpu_capability"] == "DEFAULT"

    def test_bytes_do_not_depend_on_the_surroundings(self, outcome: Outcome) -> None:
        """Another directory, locale, time zone, hash seed and thread count, and no output: the same bytes, status 0."""
        silent = outcome(self.run_with_closed_output)

        assert (silent.status, silent.out, silent.err) == (0, "", "")
        assert contents(silent.results) == contents(outcome(self.whole_run).directory / "deep" / "results")

    def test_takes_seeds_and_scenarios(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Only what was asked for is run, in the order given, and only its checks are made."""
        argv = ["run", "--output-dir", str(tmp_path), "--seeds", "4294967295", "0", "--scenarios", "omit_rng"]

        status = experiment.main(argv)

        out, err = capsys.readouterr()
        *lines, checks = out.splitlines()
        assert (status, err, checks) == (0, "", '{"omit_rng_all_fail": true}')
        assert [line.split()[:3] for line in lines] == [
            ["seed=4294967295", "scenario=omit_rng", "exact=false"],
            ["seed=0", "scenario=omit_rng", "exact=false"],
        ]


class TestViews:
    """`one`, `inspect`, `matrix` and `trace`."""

    @staticmethod
    @in_background
    def one(directory: Path) -> Ended:
        """Evaluate one combination."""
        return ended(directory, "one", "--seed", "11", "--scenario", "omit_stream")

    @staticmethod
    @in_background
    def inspect(directory: Path) -> Ended:
        """Inspect the default seed."""
        return ended(directory, "inspect")

    @staticmethod
    @in_background
    def matrix(directory: Path) -> Ended:
        """Show all scenarios of a seed."""
        return ended(directory, "matrix", "--seed", "11")

    @staticmethod
    @in_background
    def trace(directory: Path) -> Ended:
        """Follow a combination."""
        return ended(directory, "trace", "--seed", "11", "--scenario", "omit_scheduler")

    def test_one_prints_the_result_as_json(self, outcome: Outcome) -> None:
        """`one` prints all of a result but the step trace, indented by 2, keys in the contract's order."""
        one = outcome(self.one)

        result = json.loads(one.out)
        assert (one.status, one.err) == (0, "")
        assert one.out == json.dumps(result, indent=2) + "\n"
        assert list(result) == [
            *("seed", "scenario", "checkpoint_position", "payload_keys", "interrupt_optimizer_step"),
            *("interrupt_microstep_in_accumulation", "reference_final_model_hash", "resumed_final_model_hash"),
            *("first_divergent_optimizer_step", "exact_resume", "model_exact", "optimizer_exact", "scheduler_exact"),
            *("stream_exact", "rng_exact", "gradients_exact", "next_batch_match", "max_parameter_abs_error"),
            *("max_optimizer_tensor_abs_error", "learning_rate_error"),
        ]
        assert result["payload_keys"] == [
            *("config", "counters", "model", "optimizer", "rng", "scenario", "scheduler", "schema_version")
        ]
        assert re.fullmatch("[0-9a-f]{64}", result["reference_final_model_hash"])
        assert re.fullmatch("[0-9a-f]{64}", result["resumed_final_model_hash"])
        known = {
            "seed": 11,
            "scenario": "omit_stream",
            "checkpoint_position": "optimizer_step_boundary",
            "interrupt_optimizer_step": 5,
            "interrupt_microstep_in_accumulation": 0,
            "first_divergent_optimizer_step": 6,
            "exact_resume": False,
            "model_exact": False,
            "optimizer_exact": False,
            "scheduler_exact": True,
            "stream_exact": False,
            "rng_exact": True,
            "gradients_exact": True,
            "next_batch_match": False,
            "learning_rate_error": 0.0,
        }
        assert result | known == result

    def test_inspect_shows_the_fixture(self, outcome: Outcome) -> None:
        """`inspect` shows runtime, model, parameters and training set-up of seed 11, in the contract's words."""
        inspect = outcome(self.inspect)

        lines = [line.strip() for line in inspect.out.splitlines()]
        assert (inspect.status, inspect.err) == (0, "")
        assert [name for name in ("runtime", "model seed=11", "parameters", "training") if name not in lines] == []
        assert {
            "torch_num_threads=1",
            "deterministic_algorithms_enabled=True",
            "device=cpu",
            "trainable_total=195",
            "optimizer=AdamW(lr=0.03, weight_decay=0.01)",
            "scheduler=StepLR(step_size=4, gamma=0.7)",
            "accumulation_steps=3 checkpoint_after_optimizer_step=5",
            "input.weight shape=(16, 8) dtype=float32 count=128",
            "input.bias shape=(16,) dtype=float32 count=16",
            "output.weight shape=(3, 16) dtype=float32 count=48",
            "output.bias shape=(3,) dtype=float32 count=3",
        } <= set(lines)

    def test_inspect_shows_the_keys_of_both_payloads(self, outcome: Outcome) -> None:
        """The mid-accumulation payload has gradients; the boundary payload has all the rest."""
        _, boundary, mid = re.split("^payload .*\n", outcome(self.inspect).out, flags=re.MULTILINE)

        keys = ["schema_version", "scenario", "config"]
        keys += ["model", "optimizer", "scheduler", "rng", "stream", "counters"]
        assert [line.split(":")[0].strip() for line in boundary.splitlines()] == keys
        assert [line.split(":")[0].strip() for line in mid.splitlines()] == [*keys, "gradients"]

    def test_matrix_prints_a_row_for_each_scenario(self, outcome: Outcome) -> None:
        """`matrix` prints seven rows under the header, aligned, with the facts and errors of the seed."""
        matrix = outcome(self.matrix)

        header, *rows = columns(matrix.out.splitlines())
        assert (matrix.status, matrix.err) == (0, "")
        assert header == ["scenario", "exact", "first", "next_batch", "lr_error", "max_param_error"]
        assert [row[:5] for row in rows] == [
            [name, "yes" if exact else "no", str(first or "--"), "same" if next_batch else "DIFF", f"{lr_error:.3e}"]
            for name, (exact, first, next_batch, lr_error) in FACTS.items()
        ]
        assert [row[5] for row in rows] == [f"{error:.3e}" for error in PARAMETER_ERRORS_OF_SEED_11.values()]

    def test_trace_prints_a_row_for_each_update_after_the_resume(self, outcome: Outcome) -> None:
        """`trace` shows the learning rate wrong at update 8, the model from 9 on, the schedule at 12."""
        trace = outcome(self.trace)

        first, *lines, last = trace.out.splitlines()
        header, *rows = columns(lines)
        assert (trace.status, trace.err) == (0, "")
        assert first == "seed=11 scenario=omit_scheduler"
        assert last == "final_exact=false first_divergent_step=9"
        assert header == ["step", "control_lr", "resumed_lr", "lr_error", "batch", "model", "max_param_error"]
        assert [row[:6] for row in rows] == [
            ["6", "0.021000", "0.021000", "0.000e+00", "match", "match"],
            ["7", "0.021000", "0.021000", "0.000e+00", "match", "match"],
            ["8", "0.014700", "0.021000", "6.300e-03", "match", "match"],
            ["9", "0.014700", "0.014700", "0.000e+00", "match", "DIFF"],
            ["10", "0.014700", "0.014700", "0.000e+00", "match", "DIFF"],
            ["11", "0.014700", "0.014700", "0.000e+00", "match", "DIFF"],
            ["12", "0.010290", "0.014700", "4.410e-03", "match", "DIFF"],
        ]
        assert [row[6] for row in rows][:3] == ["0.000e+00"] * 3
        assert rows[-1][6] == "6.065e-03"

    def test_trace_shows_other_batches(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Without the stream every batch after the resume is another one."""
        status = experiment.main(["trace", "--seed", "11", "--scenario", "omit_stream"])

        out, err = capsys.readouterr()
        _, *lines, last = out.splitlines()
        assert (status, err, last) == (0, "", "final_exact=false first_divergent_step=6")
        assert {row[4] for row in columns(lines)[1:]} == {"DIFF"}

    def test_trace_of_an_exact_resume(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A full checkpoint shows no difference in any row."""
        status = experiment.main(["trace", "--seed", "11", "--scenario", "full_mid_accumulation"])

        out, err = capsys.readouterr()
        _, *lines, last = out.splitlines()
        assert (status, err, last) == (0, "", "final_exact=true first_divergent_step=None")
        assert [row[0] for row in columns(lines)[1:]] == ["6", "7", "8", "9", "10", "11", "12"]
        assert {tuple(row[3:]) for row in columns(lines)[1:]} == {("0.000e+00", "match", "match", "0.000e+00")}

    def test_inspect_takes_a_seed(self, capsys: pytest.CaptureFixture[str]) -> None:
        """`inspect --seed` builds the model of that seed."""
        assert experiment.main(["inspect", "--seed", "17"]) == 0
        assert "\nmodel seed=17\n" in capsys.readouterr().out

    def test_help_shows_the_commands(self, capsys: pytest.CaptureFixture[str]) -> None:
        """`--help` shows the exact command lines of the module's docstring, on standard output, with status 0."""
        with pytest.raises(SystemExit) as exit_:
            experiment.main(["--help"])

        out, err = capsys.readouterr()
        assert (exit_.value.code, err) == (0, "")
        assert "python experiment.py run --output-dir results" in out


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[object, str, str]:
    """Call the command line within this process; return the status and both streams."""
    try:
        status: object = experiment.main(argv)
    except SystemExit as error:
        status = error.code
    return status, *capsys.readouterr()


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail when a training begins."""

    def evaluate_seed(*args: object) -> None:
        pytest.fail(f"a training began: {args}")

    monkeypatch.setattr(experiment, "evaluate_seed", evaluate_seed)


COMMANDS_WITH_A_SEED = {
    "one": ["one", "--scenario", "omit_rng", "--seed"],
    "inspect": ["inspect", "--seed"],
    "matrix": ["matrix", "--seed"],
    "trace": ["trace", "--scenario", "omit_rng", "--seed"],
    "run": ["run", "--output-dir", "results", "--seeds", "11"],
}
BAD_SEEDS = {
    "negative": "-1",
    "too-large": "4294967296",
    "of-more-digits-than-int-takes": "9" * 5000,
    "text": "eleven",
    "float": "11.0",
    "exponent": "1e3",
    "empty": "",
    "blank": " 11",
    "underscore": "1_1",
    "sign": "+11",
    "other-digits": "\u0661\u0661",
    "line-end": "11\n",
}


@pytest.mark.usefixtures("no_training")
class TestBadInput:
    """Bad input is one line that names the culprit, and status 2; nothing is trained, nothing written, nothing lost."""

    @pytest.mark.parametrize("command", COMMANDS_WITH_A_SEED)
    @pytest.mark.parametrize("seed", BAD_SEEDS.values(), ids=BAD_SEEDS)
    def test_bad_seed(self, command: str, seed: str, capsys: pytest.CaptureFixture[str]) -> None:
        """A seed that is no integer from 0 to 2**32 - 1 in decimal digits is named."""
        status, out, err = answer(capsys, *COMMANDS_WITH_A_SEED[command], seed)

        held = "4294967296" if seed == "4294967296" else experiment.describe(seed)
        assert (status, out) == (2, "")
        assert err == f"experiment.py: error: a seed must be an integer from 0 to 4294967295, not {held}\n"

    @pytest.mark.parametrize(
        ("argv", "message"),
        [
            (["--seeds"], "seeds must not be empty"),
            (["--scenarios"], "scenarios must not be empty"),
            (["--seeds", "11", "17", "11"], "seeds must not repeat 11"),
            (["--seeds", "11", "011"], "seeds must not repeat 11"),
            (["--scenarios", "omit_rng", "omit_stream", "omit_rng"], "scenarios must not repeat 'omit_rng'"),
        ],
        ids=["no-seed", "no-scenario", "seed", "seed-written-otherwise", "scenario"],
    )
    def test_repetition(
        self, argv: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A repeated seed or scenario is named."""
        status, out, err = answer(capsys, "run", "--output-dir", str(tmp_path / "results"), *argv)

        assert (status, out, err) == (2, "", f"experiment.py: error: {message}\n")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("argv", "message"),
        [
            ([], "the following arguments are required: COMMAND"),
            (["ruin"], "invalid choice: 'ruin'"),
            (["run"], "the following arguments are required: --output-dir"),
            (["run", "--output", "x"], "the following arguments are required: --output-dir"),
            (["run", "--output-dir"], "argument --output-dir: expected one argument"),
            (["run", "--output-dir", "x", "--scenarios", "omit_all"], "invalid choice: 'omit_all'"),
            (["one", "--seed", "11", "--scenario", "omit_all"], "invalid choice: 'omit_all'"),
            (["one", "--seed", "11"], "the following arguments are required: --scenario"),
            (["trace", "--seed", "11", "--scenario", "OMIT_RNG"], "invalid choice: 'OMIT_RNG'"),
            (["trace", "--scenario", "omit_rng"], "the following arguments are required: --seed"),
            (["matrix"], "the following arguments are required: --seed"),
            (["matrix", "--seed", "11", "12"], "unrecognized arguments: 12"),
            (["inspect", "--sed", "11"], "unrecognized arguments: --sed 11"),
        ],
        ids=lambda value: "-".join(value) or "nothing" if isinstance(value, list) else "",
    )
    def test_usage(self, argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
        """What the parser does not know, or misses, is named by its own message below the usage."""
        status, out, err = answer(capsys, *argv)

        assert (status, out) == (2, "")
        assert err.startswith("usage: experiment.py ")
        assert message in err.splitlines()[-1]

    def test_empty_output_directory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """`--output-dir ""` is refused, and not taken for the working directory."""
        monkeypatch.chdir(tmp_path)

        status, out, err = answer(capsys, "run", "--output-dir", "")

        assert (status, out, err) == (2, "", "experiment.py: error: the output directory must not be empty\n")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("below", ["", "deeper"])
    def test_file_where_the_directory_should_be(
        self, below: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A file in the place of the output directory, or of one above it, is named and kept."""
        (tmp_path / "results").write_text("precious", encoding="utf-8")
        directory = tmp_path / "results" / below

        status, out, err = answer(capsys, "run", "--output-dir", str(directory))

        assert (status, out) == (2, "")
        assert re.fullmatch(f"experiment.py: error: cannot write to output directory {str(directory)!r} .*\n", err)
        assert (tmp_path / "results").read_text(encoding="utf-8") == "precious"

    def test_directory_where_a_file_should_be(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A directory in the place of an artifact is named before any training, and the other five stay."""
        publish_earlier_set(tmp_path)
        (tmp_path / "results" / "environment.json").unlink()
        (tmp_path / "results" / "environment.json").mkdir()
        before = contents(tmp_path)

        status, out, err = answer(capsys, "run", "--output-dir", str(tmp_path / "results"))

        assert (status, out) == (2, "")
        assert err.startswith("experiment.py: error: ")
        assert err.count("\n") == 1
        assert str(tmp_path / "results" / "environment.json") in err
        assert contents(tmp_path) == before

    def test_link_to_nowhere(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A dangling link in the place of the output directory is named."""
        (tmp_path / "results").symlink_to(tmp_path / "gone")

        status, out, err = answer(capsys, "run", "--output-dir", str(tmp_path / "results"))

        assert (status, out) == (2, "")
        assert re.fullmatch("experiment.py: error: cannot write to output directory .*results'.*\n", err)
        assert [path.name for path in tmp_path.iterdir()] == ["results"]


class TestRefusal:
    """An output directory that the system does not let the program write."""

    @staticmethod
    @in_background
    def unwritable(directory: Path) -> Ended:
        """Run into a directory that refuses writing, with no privilege to override that."""
        publish_earlier_set(directory)
        (directory / "results").chmod(0o555)
        prefix: tuple[str, ...] = ()
        if os.geteuid() == 0:
            if not shutil.which("setpriv"):
                pytest.skip("the superuser may write everywhere, and setpriv is not there to take that from a process")
            prefix = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--")
        return ended(directory, "run", "--output-dir", "results", prefix=prefix)

    @staticmethod
    @in_background
    def full_disk(directory: Path) -> Ended:
        """Run into a file system of 64 KiB that already holds a set, and copy out what is there afterwards."""
        if not shutil.which("unshare"):
            pytest.skip("unshare is not there to give a process mounts of its own")
        publish_earlier_set(directory)
        setup = "mkdir disk && mount -t tmpfs -o size=64k none disk && mkdir disk/results && cp results/* disk/results"
        unshare = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
        if subprocess.run([*unshare, setup], cwd=directory, capture_output=True, check=False).returncode:
            pytest.skip("this system lets no user mount a file system")
        (directory / "disk").rmdir()
        script = f'{setup}; "$@"; status=$?; rm -r results; cp -a disk/results results; exit $status'
        return ended(directory, "run", "--output-dir", "disk/results", prefix=(*unshare, script, "sh"))

    def test_unwritable_directory(self, outcome: Outcome) -> None:
        """A directory that refuses writing is named before any training, with status 2, and what it holds stays."""
        run = outcome(self.unwritable)

        assert (run.status, run.out) == (2, "")
        assert re.fullmatch(
            r"experiment.py: error: cannot write to output directory 'results'.*: Permission denied\n", run.err
        )
        assert_earlier_set(run.results)

    def test_full_disk(self, outcome: Outcome) -> None:
        """A disk that fills up during the run is named, with status 2, and the earlier set is there, and only that."""
        run = outcome(self.full_disk)

        assert run.status == 2
        assert all(LINE.fullmatch(line) for line in run.out.splitlines())
        assert run.out
        assert re.fullmatch(
            r"experiment.py: error: cannot write to output directory 'disk/results'.*: No space left on device\n",
            run.err,
        )
        assert_earlier_set(run.results)


class TestEndings:
    """Runs that end in another way than by themselves."""

    @staticmethod
    @in_background
    def reader_gone(directory: Path) -> Ended:
        """Close the pipe after the first line, as `head -1` does."""
        publish_earlier_set(directory)
        process, line = begun(directory)
        with process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            return Ended(process.wait(), line, process.stderr.read().decode(), directory)

    @staticmethod
    @in_background
    def interrupted(directory: Path) -> Ended:
        """Press Ctrl-C during a run."""
        publish_earlier_set(directory)
        process, line = begun(directory)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        return Ended(process.returncode, line + out.decode(), err.decode(), directory)

    @staticmethod
    @in_background
    def terminated(directory: Path) -> Ended:
        """Hold a run while a second one asks for the same directory, then terminate the first."""
        publish_earlier_set(directory)
        process, line = begun(directory)
        process.send_signal(signal.SIGSTOP)
        second = ended(directory, "run", "--output-dir", "results")
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate()
        (directory / "second.json").write_text(json.dumps([second.status, second.out, second.err]), encoding="utf-8")
        return Ended(process.returncode, line + out.decode(), err.decode(), directory)

    @staticmethod
    @in_background
    def full_output(directory: Path) -> Ended:
        """Print to a device that is always full."""
        if not Path("/dev/full").exists():
            pytest.skip("this system has no /dev/full")
        return ended(directory, "inspect", prefix=("sh", "-c", 'exec "$@" > /dev/full', "sh"))

    @staticmethod
    @in_background
    def failed_check(directory: Path) -> Ended:
        """Run with a restore that leaves the random generators as they are."""
        publish_earlier_set(directory)
        program = "import sys, experiment; experiment.restore_rng_state = id; sys.exit(experiment.main(sys.argv[3:]))"
        prefix = (sys.executable, "-c", program)
        return ended(directory, "run", "--output-dir", "results", "--seeds", "11", prefix=prefix, PYTHONPATH=str(ROOT))

    def test_output_closed_early_ends_quietly(self, outcome: Outcome) -> None:
        """When the reader of the output goes, the run ends with the status of SIGPIPE and says nothing."""
        run = outcome(self.reader_gone)

        assert (run.status, run.err) == (141, "")
        assert LINE.fullmatch(run.out.rstrip("\n"))
        assert_earlier_set(run.results)

    def test_ctrl_c(self, outcome: Outcome) -> None:
        """Ctrl-C ends a run with status 130 and one line; the earlier results are untouched, no staging is left."""
        run = outcome(self.interrupted)

        assert (run.status, run.err) == (130, "experiment.py: ended by SIGINT\n")
        assert all(LINE.fullmatch(line) for line in run.out.splitlines())
        assert run.out
        assert_earlier_set(run.results)

    def test_termination(self, outcome: Outcome) -> None:
        """SIGTERM ends a run with status 143 and one line; the earlier results are untouched, no staging is left."""
        run = outcome(self.terminated)

        assert (run.status, run.err) == (143, "experiment.py: ended by SIGTERM\n")
        assert all(LINE.fullmatch(line) for line in run.out.splitlines())
        assert run.out
        assert_earlier_set(run.results)

    def test_two_runs_at_once(self, outcome: Outcome) -> None:
        """A second run into a directory that a first one is writing is refused, with status 2, before any training."""
        status, out, err = json.loads((outcome(self.terminated).directory / "second.json").read_text(encoding="utf-8"))

        assert (status, out) == (2, "")
        assert err == "experiment.py: error: output directory 'results' is being written by another run\n"

    def test_output_that_cannot_be_written(self, outcome: Outcome) -> None:
        """A full device behind standard output is one line on standard error, and status 2."""
        inspect = outcome(self.full_output)

        assert (inspect.status, inspect.out) == (2, "")
        assert inspect.err == "experiment.py: error: cannot write to standard output: No space left on device\n"

    def test_failed_acceptance_check(self, outcome: Outcome) -> None:
        """Failed checks are printed with the others and named on standard error, status 1; FAIL is published."""
        run = outcome(self.failed_check)

        *lines, checks = run.out.splitlines()
        failed = ["full_boundary_all_exact", "full_mid_accumulation_all_exact"]
        assert (run.status, run.err) == (1, f"experiment.py: acceptance checks failed: {', '.join(failed)}\n")
        assert len([line for line in lines if LINE.fullmatch(line)]) == len(lines) == 7
        assert [name for name, passed in json.loads(checks).items() if not passed] == failed
        assert json.loads((run.results / "run-summary.json").read_text(encoding="utf-8"))["status"] == "FAIL"
        assert {path.name for path in run.results.iterdir()} == SIX_FILES
