"""The documents: what the README shows is what its commands print, what it claims is what the results say.

A block of commands below the comment `<!-- run -->` is run here, in a copy of the project, in the order of the file:

* `$ command` is handed to the shell; what it prints, on either stream, must be the lines that follow.
* A line `...` stands for any number of lines, `…` within a line for any characters.
* A command must succeed. To show another status: `$ command; echo "exit status $?"`.

The claims are the rows of the table whose first column is `claim`. A cell of `file and field` holds one or more pairs
of a file and a JSON pointer into it (rows of results.csv count as an array of objects), and the cells `expected` and
`tolerance` one value for each; `<br>` is between them. A name alone is a neighbour of the field above it.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from test_environment import environment

import experiment
import report
import verify

ROOT = Path(__file__).resolve().parent.parent
MARKDOWN = MarkdownIt("commonmark").enable("table")
README = (ROOT / "README.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------------------------------------- blocks of commands


def blocks(text: str) -> Iterator[tuple[int, bool, str]]:
    """Yield each block of code: number of its first line, whether it is marked to be run, and its text."""
    tokens = MARKDOWN.parse(text)
    for before, token in itertools.pairwise([Token("", "", 0), *tokens]):
        if token.type in {"fence", "code_block"} and token.map:
            yield token.map[0] + 1, before.content.strip() == "<!-- run -->", token.content


def commands(block: str) -> list[tuple[str, str]]:
    """Return each command of a block with the output shown for it."""
    first, *parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    assert not first, f"a block that is run begins with a command: {first!r}"
    pairs = (part.partition("\n") for part in parts)
    return [(command, output.rstrip("\n")) for command, _, output in pairs]


def as_shown(shown: str, printed: str) -> bool:
    """Return whether an output is the one shown, `...` and `…` standing for anything."""
    lines = (
        r"(.*\n)*" if line.strip() == "..." else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in shown.splitlines()
    )
    return (
        re.fullmatch("".join(lines), printed if printed.endswith("\n") or not printed else printed + "\n") is not None
    )


MARKED = {f"line {number}": block for number, marked, block in blocks(README) if marked}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the environment that runs this test, in which the blocks follow one another."""
    project = tmp_path_factory.mktemp("readme") / "project"
    made = (".venv", ".git", "results", "report", "build", ".hypothesis", ".*_cache", "__pycache__")
    shutil.copytree(ROOT, project, ignore=shutil.ignore_patterns(*made))
    (project / ".venv").mkdir()
    for part in Path(sys.prefix).iterdir():
        if part.name != "made-with":
            (project / ".venv" / part.name).symlink_to(part)
    (project / ".venv" / "made-with").write_text("python3\n", encoding="utf-8")
    return project


class TestCommands:
    """The blocks that are marked to be run."""

    @pytest.mark.parametrize("block", MARKED.values(), ids=MARKED.keys())
    def test_the_output_is_the_one_shown(self, project: Path, block: str) -> None:
        """Each command succeeds and prints what stands below it."""
        for command, shown in commands(block):
            done = subprocess.run(
                ["sh", "-c", command],
                cwd=project,
                env=environment(PATH=f"{project}/.venv/bin:{environment()['PATH']}", LC_ALL="C.UTF-8"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=600,
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}"
            assert as_shown(shown, done.stdout), f"README.md shows for {command}\n{shown}\nbut it prints\n{done.stdout}"

    def test_whatever_shows_an_output_is_run(self) -> None:
        """There are such blocks, and none with commands and their output is left out."""
        assert MARKED
        assert [number for number, marked, block in blocks(README) if "\n$ " in f"\n{block}" and not marked] == []

    @pytest.mark.parametrize(
        ("shown", "printed", "same"),
        [
            ("a\nb", "a\nb\n", True),
            ("a\nb", "a\nb", True),
            ("a\nb", "a\nc\n", False),
            ("a", "a\nb\n", False),
            ("a\n...\nd", "a\nb\nc\nd\n", True),
            ("a\n...\nd", "a\nd\n", True),
            ("a\n...\nd", "a\nb\n", False),
            ("{\n  ...\n}", "{\n  1\n}\n", True),
            ("...\nb", "a\nb\nc\n", False),
            ("took … s", "took 1.5 s\n", True),
            ("took … s", "took 1.5 h\n", False),
            ("a.c", "abc\n", False),
            ("", "", True),
            ("", "a\n", False),
        ],
    )
    def test_the_comparison_sees_what_differs(self, shown: str, printed: str, same: bool) -> None:
        """Only what is marked as volatile may be anything."""
        assert as_shown(shown, printed) is same

    def test_blocks_are_found(self) -> None:
        """Indented and fenced ones, marked or not, with the output of each command."""
        text = "<!-- run -->\n\n    $ a\n    b\n\ntext\n\n    $ c\n\n<!-- run -->\n```console\n$ d\ne\n\nf\n$ g\n```\n"

        found = list(blocks(text))

        assert found == [(3, True, "$ a\nb\n"), (8, False, "$ c\n"), (11, True, "$ d\ne\n\nf\n$ g\n")]
        assert commands(found[2][2]) == [("d", "e\n\nf"), ("g", "")]


# ------------------------------------------------------------------------------------------------------ claims


@dataclass(frozen=True)
class Fact:
    """One value that a claim stands on."""

    file: str
    pointer: str
    expected: Any
    rtol: float | None

    def holds(self, directory: Path) -> bool:
        """Return whether the value in a directory of results is the expected one, within the tolerance."""
        actual = verify.parse(self.file, (directory / self.file).read_bytes())
        for step in self.pointer.split("/")[1:]:
            actual = actual[int(step)] if isinstance(actual, list) else actual[step]
        if self.rtol is None:
            return verify.same(actual, self.expected)
        assert isinstance(actual, float), "a tolerance is for a float"
        return math.isclose(actual, self.expected, rel_tol=self.rtol)


def claims(text: str) -> dict[str, dict[str, str]]:
    """Return the rows of the claims table, by number, as what stands in each column."""
    tokens, tables = iter(MARKDOWN.parse(text)), list[list[list[str]]]()
    for token in tokens:
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type in {"th_open", "td_open"}:
            tables[-1][-1].append(next(tokens).content)
    [(header, *rows)] = [table for table in tables if table[0][0] == "claim"]
    return {row[0].replace("*", "").split()[0]: dict(zip(header, row, strict=True)) for row in rows}


def facts(row: dict[str, str]) -> list[Fact]:
    """Return what a claim stands on."""
    places, expected, tolerances = (re.split(r"<br>", row[key]) for key in ("file and field", "expected", "tolerance"))
    found: list[Fact] = []
    for place, value, tolerance in zip(places, expected, tolerances, strict=True):
        *files, pointer = re.findall("`([^`]+)`", place)
        file = files[0] if files else found[-1].file
        pointer = pointer if files else f"{found[-1].pointer.rpartition('/')[0]}/{pointer}"
        rtol = re.fullmatch(r"exact|rtol ([0-9.e-]+)", tolerance.strip())
        assert rtol, f"no tolerance: {tolerance}"
        found.append(Fact(file, pointer, json.loads(value.strip().strip("`")), float(rtol[1]) if rtol[1] else None))
    return found


CLAIMS = claims(README)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a new default run."""
    directory = tmp_path_factory.mktemp("claims") / "results"
    experiment.run_experiment(directory)
    return directory


class TestClaims:
    """The table of claims, and what the results say of them."""

    def test_they_are_those_of_the_report(self) -> None:
        """C1 to C7 are stated in the same words, each with at least one value that shows it."""
        stated = {number: re.sub(r"\**C\d\.?\** *", "", row["claim"], count=1) for number, row in CLAIMS.items()}

        assert stated == {claim.number: claim.text for claim in report.CLAIMS.values()}
        assert all(facts(row) for row in CLAIMS.values())

    @pytest.mark.parametrize("number", CLAIMS)
    def test_each_is_what_a_new_run_finds(self, fresh: Path, number: str) -> None:
        """Every value is recomputed and equal, and the summary's are those that the rows and traces give."""
        assert verify.verify(fresh, None, verify.SCHEMAS).passed
        for fact in facts(CLAIMS[number]):
            assert fact.holds(fresh), fact

    @pytest.mark.parametrize("number", CLAIMS)
    def test_each_is_what_is_committed(self, number: str) -> None:
        """The values are those of expected/."""
        for fact in facts(CLAIMS[number]):
            assert fact.holds(ROOT / "expected"), fact

    @pytest.mark.parametrize(
        "spoilt",
        [
            Fact("run-summary.json", "/scenario_summary/full_boundary/exact_runs", 4, None),
            Fact("run-summary.json", "/scenario_summary/full_boundary/exact_runs", 5.0, None),
            Fact("run-summary.json", "/scenario_summary/omit_rng/first_divergent_steps", [6, 6, 6, 6, 7], None),
            Fact("results.csv", "/2/max_parameter_abs_error", 0.0712, 1e-4),
        ],
        ids=["another number", "another type", "one of five", "beyond the tolerance"],
    )
    def test_what_is_not_so_is_noticed(self, spoilt: Fact) -> None:
        """A claim that is off in one value does not hold."""
        assert not spoilt.holds(ROOT / "expected")

    def test_each_command_exists(self) -> None:
        """What a claim says to run is a target of the Makefile, or a command of the experiment that parses."""
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)

        for row in CLAIMS.values():
            named = re.findall("`([^`]+)`", row["command"])
            assert named
            for command in named:
                program, *arguments = command.split()
                if program == "make":
                    assert set(arguments) <= set(targets)
                else:
                    assert command.startswith(".venv/bin/python experiment.py ")
                    assert experiment.parse_args(arguments[1:])


# --------------------------------------------------------------------------------------------------- the files


def top_level() -> list[str]:
    """Return the names of the project's visible files and directories, without those that the Makefile makes."""
    made = re.findall(r"^/(\w+)/$", (ROOT / ".gitignore").read_text(encoding="utf-8"), re.MULTILINE)
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
    )
    names = {name.partition("/")[0] for name in tracked.stdout.splitlines()} or {path.name for path in ROOT.iterdir()}
    return sorted(name for name in names if not name.startswith((".", "_", "README")) and name not in made)


class TestMap:
    """What the documents say of the files."""

    @pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
    def test_links_lead_somewhere(self, document: str) -> None:
        """Every relative link and picture is there."""
        text = (ROOT / document).read_text(encoding="utf-8")
        links = re.findall(r"\]\(([^)#\s]+)", text) + re.findall(r'(?:src|srcset|href)="([^"#]+)"', text)

        for link in links:
            assert re.match("[a-z]+:", link) or (ROOT / link).exists(), link

    @pytest.mark.parametrize("name", top_level())
    def test_every_file_is_on_the_map(self, name: str) -> None:
        """The README names each top-level file and directory."""
        assert re.search(rf"`{re.escape(name)}/?`|`{re.escape(re.sub(r'-.*|[.].*', '', name))}\*", README), name

    @pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
    def test_every_make_target_named_exists(self, document: str) -> None:
        """`make X` is only ever said of a target."""
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)

        named = re.findall(r"(?:`|^    )make ([a-z-]+)", (ROOT / document).read_text(encoding="utf-8"), re.MULTILINE)
        assert named
        assert set(named) <= set(targets)

    def test_the_readme_is_short(self) -> None:
        """It stays under 400 lines."""
        assert len(README.splitlines()) < 400


class TestCitation:
    """CITATION.cff."""

    @pytest.mark.parametrize(("removed", "status"), [("", 0), ("title: ", 1)], ids=["as it is", "without its title"])
    def test_it_is_valid(self, tmp_path: Path, removed: str, status: int) -> None:
        """The schema of the Citation File Format accepts it, and would not without a title."""
        lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines(keepends=True)
        path = tmp_path / "CITATION.cff"
        path.write_text(
            "".join(line for line in lines if not removed or not line.startswith(removed)), encoding="utf-8"
        )

        command = ["-m", "check_jsonschema", "--builtin-schema", "vendor.citation-file-format", str(path)]
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)

        assert done.returncode == status, done.stdout

    def test_the_version_is_the_program_s(self) -> None:
        """It stands in one place, and here it is the same."""
        text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")

        assert re.findall(r"^version: (.*)$", text, re.MULTILINE) == [experiment.__version__]
