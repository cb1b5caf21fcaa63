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

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_an_interrupt_leaves_nothing_behind(self, number: int, tmp_path: Path) -> None:
        """After Ctrl-C or a request to end: status 130, no temporary file, no process."""
        mark = tmp_path / "mark"
        job = tmp_path / "slow_job.py"
        job.write_text(
            "import time\nfrom pathlib import Path\nfrom resume_audit import Job\n"
            f"def make_job(seed):\n    Path({str(mark)!r}).touch()\n    time.sleep(600)\n",
            encoding="utf-8",
        )
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        running = subprocess.Popen(
            [sys.executable, "-m", "resume_audit", str(job), "--steps", "3"],
            env=os.environ | {"TMPDIR": str(temporary)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert wait_for(mark.exists)

        running.send_signal(number)
        _, said = running.communicate(timeout=60)

        assert running.returncode == 130
        assert said == "resume-audit: interrupted\n"
        assert list(temporary.glob("resume-audit-*")) == []
        assert wait_for(lambda: not processes_of(str(job)))


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether a condition comes about in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        threading.Event().wait(0.02)
    return True


def processes_of(text: str) -> list[int]:
    """Return the processes whose command line mentions a text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "cmdline").read_bytes():
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
