"""The container's files, read without an engine; `make image-test` tests what they make."""

import fnmatch
import os
import re
import subprocess
from pathlib import Path

import pytest

import experiment

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
INSTRUCTIONS = [line for line in DOCKERFILE.replace("\\\n", "").splitlines() if re.match(r"[A-Z]+ ", line)]
PIN = "python:3.11.16-slim-bookworm@sha256:528257d48c1da0dcecc2e725d1ae34498d60c965f1241e39cd6a85a8859bdf84"
INHERITED = r"MAKE.*|MFLAGS|GNUMAKEFLAGS|ARGS|IMAGE.*|BASE_IMAGE|DOCKER.*"


def arguments(instruction: str) -> list[str]:
    """Return the arguments of each occurrence of an instruction, in their order."""
    return [line.removeprefix(f"{instruction} ") for line in INSTRUCTIONS if line.startswith(f"{instruction} ")]


def pairs(instruction: str) -> dict[str, str]:
    """Return the names and values that the occurrences of an instruction set."""
    return {
        name: plain or quoted
        for line in arguments(instruction)
        for name, quoted, plain in re.findall(r'([\w.]+)=(?:"([^"]*)"|(\S+))', line)
    }


def test_the_base_is_pinned_by_tag_and_digest() -> None:
    """Both stages start from one base, which the labels name as it is."""
    default = pairs("ARG")

    assert default["BASE_IMAGE"] == PIN
    assert f"{default['BASE_NAME']}@{default['BASE_DIGEST']}" == PIN
    assert arguments("FROM") == ["${BASE_IMAGE} AS build", "${BASE_IMAGE}"]


def test_the_readme_names_the_pinned_base() -> None:
    """Whoever reads the table of pins reads the one in force."""
    assert PIN in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_numeric_pins_are_the_programs_own() -> None:
    """The image sets each variable to the value that the program would choose."""
    assert experiment.NUMERIC_PINS.items() <= pairs("ENV").items()


def test_the_version_is_the_programs_own() -> None:
    """The label tells the version of what is inside."""
    assert pairs("LABEL")["org.opencontainers.image.version"] == experiment.__version__


def test_all_labels_are_there() -> None:
    """Title, description, version, licence, source, revision and base, under the names of the OCI."""
    named = ["title", "description", "version", "licenses", "source", "revision", "base.name", "base.digest"]

    assert set(pairs("LABEL")) == {f"org.opencontainers.image.{name}" for name in named}


def test_no_debian_package_is_added() -> None:
    """The digest of the base pins every one of them."""
    assert not re.search(r"\b(apt|apt-get|dpkg|aptitude)\b", " ".join(INSTRUCTIONS))


def test_it_keeps_to_what_both_builders_know() -> None:
    """The classic builder has no mounts, no heredocs and no flags of COPY but --from and --chown."""
    assert not re.search(r"RUN +--|<<|^# *syntax", DOCKERFILE, flags=re.MULTILINE)
    assert {flag for line in arguments("COPY") for flag in re.findall(r"--(\w+)", line)} <= {"from", "chown"}


def test_the_context_holds_what_is_copied_and_nothing_else() -> None:
    """Of all files of the project, .dockerignore admits exactly those that a COPY instruction names."""
    first, *rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    copied = [name for line in arguments("COPY") if "--from" not in line for name in line.split()[:-1]]
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode:
        pytest.skip("no git repository tells which files are the project's")
    tracked = listing.stdout.decode().rstrip("\0").split("\0")

    admitted = {name for name in tracked if any(fnmatch.fnmatch(name, rule.removeprefix("!")) for rule in rules)}

    assert first == "*"
    assert all(rule.startswith("!") for rule in rules)
    assert admitted == {name for name in tracked if name in copied or name.split("/")[0] in copied}
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.parametrize("target", ["image", "image-run", "image-verify", "image-test"])
def test_without_an_engine_one_line_says_so(target: str, tmp_path: Path) -> None:
    """The target ends before it does anything, and names what it tried to call."""
    kept = {name: value for name, value in os.environ.items() if not re.fullmatch(INHERITED, name)}
    missing = tmp_path / "no-engine"

    result = subprocess.run(
        ["make", target, f"DOCKER={missing}"], cwd=ROOT, env=kept, capture_output=True, text=True, check=False
    )

    said = [line for line in result.stderr.splitlines() if not line.startswith("make")]
    assert result.returncode != 0
    assert result.stdout == ""
    assert len(said) == 1
    assert str(missing) in said[0]
