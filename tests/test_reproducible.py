"""Two runs in one environment write the same bytes, whoever makes them, wherever, and in whatever surroundings."""

from __future__ import annotations

import os
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


@pytest.fixture
def directories() -> Iterator[tuple[Path, Path]]:
    """Two directories that every user can get to, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory(prefix="the other's, ü ") as other:
        yield Path(one), Path(other)


def can_run_as(user: int) -> bool:
    """Return whether a process of this one's may become that user and still run the interpreter."""
    if os.geteuid() != 0:
        return False
    command = [sys.executable, "-c", "import jsonschema"]
    try:
        done = subprocess.run(
            command, user=user, group=user, extra_groups=[], cwd="/", capture_output=True, check=False
        )
    except PermissionError:
        return False
    return done.returncode == 0


def run(directory: Path, user: int, umask: int, **variables: str) -> subprocess.CompletedProcess[str]:
    """Make a run of its own home, current directory and output directory, with these variables and no others."""
    (directory / "home").mkdir()
    for path in (directory, directory / "home"):
        os.chown(path, user, -1)
    return subprocess.run(
        [sys.executable, str(ROOT / "experiment.py"), "run", "--output-dir", "results"],
        cwd=directory,
        env={"HOME": str(directory / "home"), **variables},
        user=user if user != os.geteuid() else None,
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_same_bytes_from_other_surroundings(directories: tuple[Path, Path]) -> None:
    """Home, current directory, user, umask, time zone, locale and hash seed leave no mark in a file or on screen."""
    me = os.geteuid()
    other = NOBODY if can_run_as(NOBODY) else me  # only root can be two users

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(run, directories[0], me, 0o022, PYTHONHASHSEED="0", TZ="UTC", LC_ALL="C")
        second = pool.submit(
            run, directories[1], other, 0o077, PYTHONHASHSEED="4321", TZ="Pacific/Kiritimati", LC_ALL="C.UTF-8"
        )
        runs = [first.result(), second.result()]

    one, two = ({path.name: path.read_bytes() for path in (d / "results").iterdir()} for d in directories)
    assert [(done.returncode, done.stderr) for done in runs] == [(0, ""), (0, "")]
    assert runs[0].stdout == runs[1].stdout
    assert set(one) == set(experiment.ARTIFACTS) == set(verify.FILES)
    assert one == two
