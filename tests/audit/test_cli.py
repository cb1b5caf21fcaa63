"""The command line as a user runs it."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jobs
import numpy as np
import pytest
import torch

import resume_audit
from resume_audit import cli

pytestmark = pytest.mark.usefixtures("servers")

JOBS = str(Path(jobs.__file__))


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the real command line."""
    return subprocess.run(
        [sys.executable, "-m", "resume_audit", *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}, **options,
    )  # fmt: skip


class TestExitStatus:
    """What the shell gets, within this process: the servers are the suite's."""

    @pytest.mark.parametrize(
        ("factory", "status"), [("exact", 0), ("loses_count", 1), ("step_raises", 2), ("unseeded", 3), ("not_there", 2)]
    )
    def test_the_status_is_the_verdict(
        self, factory: str, status: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """0 EXACT, 1 DIVERGES, 2 ERROR, 3 ABSTAIN; the verdict stands first on the screen, all else in the files."""
        files = {name: tmp_path / f"report.{name}" for name in ("json", "markdown", "html")}

        got = cli.main([JOBS, "--factory", factory, *(f"--{name}={file}" for name, file in files.items())])

        written = json.loads(files["json"].read_text(encoding="utf-8"))
        assert got == status
        assert capsys.readouterr().out.startswith(written["verdict"])
        assert all(file.stat().st_size for file in files.values())
        assert len(list(tmp_path.iterdir())) == len(files)

    def test_the_jobs_own_traceback_comes_last(self, capsys: pytest.CaptureFixture[str]) -> None:
        """An error of the job's ends with its own exception, and shows no line of this package."""
        cli.main([JOBS, "--factory", "step_raises"])

        lines = capsys.readouterr().out.rstrip().splitlines()
        assert lines[-1] == "ArithmeticError: the loss is not finite"
        assert not any("resume_audit/" in line for line in lines if "File" in line)

    def test_what_the_job_prints_is_no_part_of_the_report(self, capfd: pytest.CaptureFixture[str]) -> None:
        """The JSON on standard output is the JSON alone."""
        cli.main([JOBS, "--factory", "prints", "--json", "-"])

        assert json.loads(capfd.readouterr().out)["verdict"] == "EXACT"

    @pytest.mark.parametrize(
        ("arguments", "culprit"),
        [
            ([JOBS, "--steps", "0"], "steps"),
            ([JOBS, "--jobs", "0"], "jobs"),
            ([JOBS, "--timeout", "-1"], "timeout"),
            ([JOBS, "--seed", "-1"], "seed"),
            ([JOBS, "--every", "--interrupt", "1"], "every"),
            ([JOBS, "--json", "/no/such/folder/x.json"], "/no/such/folder"),
            ([JOBS, "--html", JOBS], "jobs.py would replace the job"),
            ([f"{JOBS}:exact", "--json", JOBS], "jobs.py would replace the job"),
            ([JOBS, "--json", "report", "--html", "report"], "report would replace another result"),
        ],
    )
    def test_wrong_usage_is_one_line_that_names_the_culprit(
        self, arguments: list[str], culprit: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """What cannot be followed is refused before anything runs, in one line on standard error, with status 2."""
        status = cli.main(arguments)

        (line,) = capsys.readouterr().err.splitlines()
        assert status == 2
        assert culprit in line

    @pytest.mark.parametrize(
        ("constants", "culprit"),
        [
            ("STEPS = 0", "STEPS"), ("STEPS = '6'", "STEPS"), ("STEPS = True", "STEPS"), ("", "how many steps"),
            ("STEPS = 6; INTERRUPT = []", "INTERRUPT"), ("STEPS = 6; INTERRUPT = 3", "INTERRUPT"),
            ("STEPS = 6; INTERRUPT = 'ab'", "INTERRUPT"), ("STEPS = 6; INTERRUPT = [2.7]", "INTERRUPT"),
            ("STEPS = 6; INTERRUPT = [-1]", "INTERRUPT"), ("STEPS = 6; INTERRUPT = [7]", "7 lies outside"),
        ],
    )  # fmt: skip
    def test_a_constant_of_the_job_that_cannot_be_followed_is_named(
        self, constants: str, culprit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """STEPS and INTERRUPT that are no number and no list of steps within the run are wrong usage."""
        job = tmp_path / "constant_job.py"
        job.write_text(f"from resume_audit import Job\n{constants}\nmake_job = lambda seed: Job({{}}, dict)\n")

        status = cli.main([str(job)])

        assert status == 2
        assert culprit in capsys.readouterr().out.splitlines()[0]

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("import os; os._exit(3)", "exited with status 3"),
            ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
            ("while True: pass", "still not done after 2 s"),
            ("raise SystemExit('enough')", "SystemExit: enough"),
            ("def make_job(seed: return", "SyntaxError"),
        ],
    )
    @pytest.mark.parametrize("how", [[], ["--fresh"]], ids=["forked", "fresh"])
    def test_an_import_that_does_not_end_well_is_told(
        self, how: list[str], text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A module that exits, is killed, hangs or raises while it is imported is an ERROR of the import."""
        job = tmp_path / "bad_job.py"
        job.write_text(text, encoding="utf-8")

        status = cli.main([str(job), "--steps", "3", "--timeout", "2", *how])

        said = " ".join(capsys.readouterr().out.split())
        assert status == 2
        assert said.startswith("ERROR Importing the job failed")
        assert told in said

    def test_a_file_that_is_no_python_is_told(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A file of another kind is named as such, and not taken for a module."""
        notes = tmp_path / "notes.txt"
        notes.touch()

        assert cli.main([str(notes), "--steps", "3"]) == 2
        assert "notes.txt is not a Python file" in " ".join(capsys.readouterr().out.split())

    @pytest.mark.parametrize("arguments", [[], [JOBS, "--interrupt", "a"], [JOBS, "--unknown"]])
    def test_what_is_no_command_has_status_two(self, arguments: list[str]) -> None:
        """No job, no list of steps, no such option."""
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)

        assert ended.value.code == 2


class TestProgram:
    """A process of its own."""

    def test_a_path_that_is_not_there(self, tmp_path: Path) -> None:
        """A missing file is named, with status 2, in any folder."""
        done = command("nowhere.py", cwd=tmp_path)

        assert done.returncode == 2
        assert "no such file: nowhere.py" in done.stdout
        assert done.stderr == ""

    def test_the_example_is_a_job(self, tmp_path: Path) -> None:
        """`--example` prints a job that diverges, and whose mended variant is exact."""
        job = tmp_path / "train_job.py"

        job.write_text(command("--example").stdout, encoding="utf-8")

        broken = resume_audit.audit(job, interrupt=[5])
        assert broken.verdict == "DIVERGES"
        assert [e["path"] for e in broken.data["resumes"][0]["diagnosis"]["proven"]] == ["average.updates"]
        assert resume_audit.audit(job, factory="make_fixed", interrupt=[5]).verdict == "EXACT"

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_an_interrupt_leaves_nothing_behind(self, number: int, tmp_path: Path) -> None:
        """After Ctrl-C, a request to end or the end of the terminal: status 130, no temporary file, no process."""
        marks = tmp_path / "marks"
        marks.mkdir()
        job = tmp_path / "slow_job.py"
        job.write_text(
            "import os\nfrom pathlib import Path\n"
            f"def make_job(seed):\n    (Path({str(marks)!r}) / str(os.getpid())).touch()\n    while True: pass\n",
            encoding="utf-8",
        )
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        running = subprocess.Popen(
            [sys.executable, "-m", "resume_audit", str(job), "--steps", "3", "--jobs", "3"],
            env=os.environ | {"TMPDIR": str(temporary)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert wait_for(lambda: len(list(marks.iterdir())) == 3)

        running.send_signal(number)
        _, said = running.communicate(timeout=60)

        assert running.returncode == 130
        assert said == "resume-audit: interrupted\n"
        assert list(temporary.iterdir()) == []
        assert wait_for(lambda: not processes_of(str(temporary)))

    def test_a_run_past_its_time_leaves_nothing_behind(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """After a timeout the runs that hang are gone, the others side by side with them too."""
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        monkeypatch.setenv("TMPDIR", str(temporary))

        done = command(JOBS, "--factory", "step_spins", "--timeout", "2", "--jobs", "3")

        assert "Timeout" in done.stdout
        assert list(temporary.iterdir()) == []
        assert wait_for(lambda: not processes_of(str(temporary)))


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether a condition comes about in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        threading.Event().wait(0.02)
    return True


def processes_of(text: str) -> list[int]:
    """Return the processes that were started with a text in their environment, and their forks."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


class TestCaller:
    """The process that asks for an audit."""

    def test_an_audit_leaves_no_trace_in_its_caller(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Generators, search path, folder, modules, threads, settings, temporary files: all as they were."""

        def look() -> tuple[Any, ...]:
            return (
                random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist(), torch.get_num_threads(),
                list(sys.path), Path.cwd(), sorted(os.environ.items()), threading.active_count(), sys.gettrace(),
                signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGCHLD),
                sorted(tmp_path.iterdir()),
            )  # fmt: skip

        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        resume_audit.audit(jobs.exact, steps=3, interrupt=[1])
        before = look()

        resume_audit.audit(jobs.loses_count, steps=3, interrupt=[1])

        assert look() == before

    def test_a_first_audit_leaves_the_generators_alone(self) -> None:
        """The imports of a first audit and of a report draw from no generator of the process."""
        look = (
            "import random, sys; before = random.getstate(); import resume_audit, jobs\n"
            "resume_audit.audit(jobs.bare, steps=3, interrupt=[1]).to_markdown()\n"
            "sys.exit(random.getstate() != before)"
        )
        path = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parent)])

        done = subprocess.run([sys.executable, "-c", look], env=os.environ | {"PYTHONPATH": path}, check=False)

        assert done.returncode == 0

    @pytest.mark.parametrize(
        "wrong",
        [{"steps": "3"}, {"steps": True}, {"interrupt": 3}, {"interrupt": []}, {"interrupt": [1.5]}, {"seed": "x"},
         {"jobs": 1.5}, {"timeout": float("nan")}],
        ids=str,
    )  # fmt: skip
    def test_options_of_another_kind_are_refused(self, wrong: dict[str, Any]) -> None:
        """What is no number or no list of steps is a UsageError that names the option."""
        with pytest.raises(resume_audit.UsageError, match=next(iter(wrong))):
            resume_audit.audit(jobs.bare, **{"steps": 3, **wrong})

    def test_a_function_that_no_other_process_can_import_is_audited(self) -> None:
        """A factory within a test is run in forks of the test's own process."""
        lost = 0

        def make_job(seed: int) -> resume_audit.Job:
            nonlocal lost
            lost = seed

            def step() -> dict[str, float]:
                nonlocal lost
                lost += 1
                return {"lost": float(lost)}

            return resume_audit.Job({}, step)

        report = resume_audit.audit(make_job, steps=4, interrupt=[2])

        (resume,) = report.data["resumes"]
        assert [entry["path"] for entry in resume["diagnosis"]["proven"]] == ["lost"]
        assert lost == 0

    def test_assert_exact_raises_the_diagnosis(self) -> None:
        """In a test suite the failing assertion names what was lost; an exact job gives its report."""
        assert resume_audit.assert_exact(jobs.exact, steps=3, interrupt=[1]).verdict == "EXACT"

        with pytest.raises(AssertionError, match=r"tally\.count"):
            resume_audit.assert_exact(jobs.loses_count, steps=3, interrupt=[1])
