"""Two runs in one environment write the same bytes, whoever makes them, wherever, and in whatever surroundings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import experiment
import verify

ROOT = Path(__file__).resolve().parent.parent
NOBODY = 65534  # a user without an account, home or name is all that is needed
BECOME_NOBODY = (  # who may still read the interpreter, wherever root keeps it
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)


@pytest.fixture
def directories() -> Iterator[tuple[Path, Path]]:
    """Two directories that every user can get to, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory(prefix="the other's, ü ") as other:
        yield Path(one), Path(other)


def can_become_nobody() -> bool:
    """Return whether this process may start one of another user: only root may, where the system has the tool."""
    if os.geteuid() != 0 or shutil.which(BECOME_NOBODY[0]) is None:
        return False
    command = [*BECOME_NOBODY, sys.executable, "-c", "import os; print(os.geteuid())"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout == f"{NOBODY}\n"


def run(directory: Path, *become: str, umask: int, **variables: str) -> subprocess.CompletedProcess[str]:
    """Make a run of its own home, current directory and output directory, with these variables and no others."""
    (directory / "home").mkdir()
    for path in (directory, directory / "home") if become else ():
        os.chown(path, NOBODY, NOBODY)
    return subprocess.run(
        [*become, sys.executable, str(ROOT / "experiment.py"), "run", "--output-dir", "results"],
        cwd=directory,
        env={"HOME": str(directory / "home"), "PATH": os.environ["PATH"], **variables},
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_same_bytes_from_other_surroundings(directories: tuple[Path, Path]) -> None:
    """Home, current directory, user, umask, time zone, locale and hash seed leave no mark in a file or on screen."""
    other = BECOME_NOBODY if can_become_nobody() else ()
    south_sea = {"PYTHONHASHSEED": "4321", "TZ": "Pacific/Kiritimati", "LC_ALL": "C.UTF-8"}

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(run, directories[0], umask=0o022, PYTHONHASHSEED="0", TZ="UTC", LC_ALL="C")
        second = pool.submit(run, directories[1], *other, umask=0o077, **south_sea)
        runs = [first.result(), second.result()]

    one, two = ({path.name: path.read_bytes() for path in (d / "results").iterdir()} for d in directories)
    if other:
        assert {path.stat().st_uid for path in (directories[1] / "results").iterdir()} == {NOBODY}
    assert [(done.returncode, done.stderr) for done in runs] == [(0, ""), (0, "")]
    assert runs[0].stdout == runs[1].stdout
    assert set(one) == set(experiment.ARTIFACTS) == set(verify.FILES)
    assert one == two
