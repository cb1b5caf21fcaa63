"""`docs/audit.md`: what it shows is what one gets."""

import re
from pathlib import Path

import pytest

from resume_audit.cli import main
from resume_audit.kinds import KINDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```console\n\$ resume-audit (.*)\n((?:.*\n)*?)```", PAGE)
NUMBER = re.compile(r"\d+\.\d+\S*|\d+e[-+]\d+")

pytestmark = pytest.mark.usefixtures("servers")


def told(text: str) -> str:
    """Return a screen's words; versions and last digits are another machine's own."""
    return NUMBER.sub("#", " ".join(text.split()))


@pytest.mark.parametrize(("command", "screen"), SHOWN, ids=[command for command, _ in SHOWN])
def test_shows_what_the_command_prints(
    command: str, screen: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command of the page prints what the page shows under it."""
    monkeypatch.chdir(ROOT)

    main(command.split())

    assert told(capsys.readouterr().out) == told(screen)


def test_shows_something() -> None:
    """The page has screens to compare: a diverging job, an exact one, and a matrix."""
    assert len(SHOWN) >= 3


@pytest.mark.parametrize("kind", KINDS)
def test_advises_as_the_report_does(kind: str) -> None:
    """The page's table gives the same advice as the reports."""
    assert f"| {KINDS[kind].title} | {KINDS[kind].remedy} |" in PAGE


def test_links_to_files_that_are_there() -> None:
    """Every relative link of the page leads to a file, every anchor to a heading."""
    titles = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    headings = {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}
    targets = re.findall(r"\]\(([^)]+)\)", PAGE)

    assert targets
    for target in targets:
        path, _, anchor = target.partition("#")
        assert (ROOT / "docs" / path).exists() if path else anchor in headings, target
