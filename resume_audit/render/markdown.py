"""The report as what one pastes into an issue."""

import re

from resume_audit.render import grid, story
from resume_audit.render.words import Code, Report, Sentence


def to_markdown(report: Report) -> str:
    """Return the report as GitHub-flavoured Markdown.

    Args:
        report: A report as `schemas/audit.schema.json` describes it.

    Returns:
        Text that ends in a line break; the same report gives the same text.
    """
    blocks = [f"### resume_audit: {report['verdict']}", spelled(story.headline(report))]
    blocks += [bullets(story.what_was_run(report))]
    blocks += [spelled(line) for line in story.abstention(report)]
    for finding in story.findings(report):
        blocks += [f"#### {spelled(finding.headline)}", bullets(finding.sentences)]
        blocks += [f"**What to do ({title}):** {escaped(remedy)}" for title, remedy in finding.advice]
        if finding.asides:
            blocks += [
                "<details><summary>What else differs</summary>",
                bullets(finding.asides),
            ]
            blocks += ["</details>"]
    if report["matrix"]:
        blocks += ["#### Left out, and the step at which it first shows", matrix(report)]
    if traceback := story.traceback_of(report):
        blocks += [fenced(traceback)]
    blocks += ["To see it again:", fenced(story.command(report))]
    return "\n\n".join(block for block in blocks if block) + "\n"


def matrix(report: Report) -> str:
    """Return the omission matrix as a table and its key."""
    points, rows = grid.matrix_rows(report)
    head = ["left out", *(f"after {point}" for point in points)]
    table = [head, ["---"] * len(head)]
    table += [[cell_of(name), *(cell.word if cell else "" for cell in cells)] for name, cells in rows]
    lines = [f"| {' | '.join(row)} |" for row in table]
    return "\n".join(lines) + f"\n\n{escaped(grid.key(rows))}."


def cell_of(name: str) -> str:
    """Return a row's name; inside a table a bar ends the cell, even in code."""
    return spelled((name,)).replace("|", "\\|")


def bullets(sentences: list[Sentence] | tuple[Sentence, ...]) -> str:
    """Return sentences as a list."""
    return "\n".join(f"* {spelled(sentence)}" for sentence in sentences)


def spelled(sentence: Sentence) -> str:
    """Return a sentence with the job's words as code and the rest escaped."""
    return "".join(code(part) if isinstance(part, Code) else escaped(part) for part in sentence)


def code(text: str) -> str:
    """Return a code span, fenced by more backticks than the text holds in a row."""
    ticks = "`" * (longest_run(text) + 1)
    pad = " " if text[:1] in ("`", " ", "") or text[-1:] in ("`", " ") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def fenced(text: str) -> str:
    """Return a block of code, fenced by more backticks than the text holds in a row."""
    fence = "`" * max(3, longest_run(text) + 1)
    return f"{fence}\n{text}\n{fence}"


def longest_run(text: str) -> int:
    """Return the length of the longest row of backticks."""
    return max(map(len, re.findall(r"`+", text)), default=0)


def escaped(text: str) -> str:
    """Return plain text in which nothing is markup."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)
