"""Compile the short requirements files into complete, exact and hashed ones, for all Pythons and platforms at once.

    python tools/lock.py              # keep every locked version that still satisfies the .in files
    python tools/lock.py --upgrade    # take the newest versions that satisfy them

torch is the exception: its CPU build lies on an index of its own, which need not be reachable here, and
PyPI's plain Linux wheel drags in several GB of CUDA. So the resolver is shown an index made from
``torch-cpu-wheels.sha256``, which lists the CPU wheels and nothing else, and is told their dependencies in
``pyproject.toml``, so that it opens none.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
TORCH_WHEELS = Path(__file__).with_name("torch-cpu-wheels.sha256")


def write_torch_index(directory: Path) -> None:
    """Write the listed wheels as a package index in the layout of PEP 503, which gives names and hashes."""
    links = []
    for line in TORCH_WHEELS.read_text(encoding="ascii").splitlines():
        digest, wheel = line.split()
        links.append(f'<a href="{quote(wheel)}#sha256={digest}">{wheel}</a><br>\n')
    page = directory / "torch" / "index.html"
    page.parent.mkdir()
    page.write_text("<!DOCTYPE html>\n" + "".join(links), encoding="ascii")


def compile_requirements(name: str, torch_index: Path, *options: str) -> int:
    """Compile ``name.in`` into ``name.txt`` and return the exit status of the resolver."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--generate-hashes"]
    command += ["--output-file", f"{name}.txt", "--custom-compile-command", "make lock"]
    # One version of a package for every Python and platform: what is tested on one is what the others get.
    command += ["--universal", "--fork-strategy", "fewest", "--python-version", "3.11"]
    command += ["--only-binary", ":all:"]
    # Locked hashes are kept like locked versions, but torch's follow the list.
    command += ["--index", torch_index.as_uri(), "--upgrade-package", "torch"]
    command += [*options, f"{name}.in"]
    lock = ROOT / f"{name}.txt"
    before = (lock.stat().st_mtime_ns, lock.read_bytes()) if lock.exists() else None
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if before and lock.read_bytes() == before[1]:
        os.utime(lock, ns=(before[0], before[0]))  # or make would set up the same environment once more
    return status


def main(options: list[str]) -> int:
    """Compile both files, the larger within the versions of the smaller."""
    with tempfile.TemporaryDirectory() as name:
        index = Path(name)
        write_torch_index(index)
        return compile_requirements("requirements", index, *options) or compile_requirements(
            "requirements-dev", index, "--constraints", "requirements.txt", *options
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
