"""The report on one screen."""

from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from resume_audit.render import grid, story, words
from resume_audit.render.words import Code, Report, Sentence

VERDICT_STYLE: Final = {
    "EXACT": "bold green",
    "DIVERGES": "bold red",
    "ABSTAIN": "bold yellow",
    "ERROR": "bold red",
}
CELL_STYLE: Final = {
    "exact": "green",
    "diverges": "red",
    "heals": "yellow",
    "inert": "dim",
    "error": "bold red",
}
MOST_COLUMNS: Final = 8  # of a matrix with words; a wider one has a character for each cell
MOST_FINDINGS: Final = 3  # told in full; the others by their headline


def write(report: Report, console: Console) -> None:
    """Write the report to a console: verdict, what was run, the matrix, the diagnosis in sentences.

    Args:
        report: A report as `schemas/audit.schema.json` describes it.
        console: Where to; its width decides where lines break.
    """
    verdict = report["verdict"]
    show(console, Text.assemble((verdict, VERDICT_STYLE[verdict]), "  ", styled(story.headline(report))))
    for line in story.what_was_run(report):
        show(console, indented(styled(line)))
    if report["matrix"]:
        console.print()
        write_matrix(report, console)
    for line in story.abstention(report):
        console.print()
        show(console, styled(line))
    found = story.findings(report)
    advised: set[str] = set()
    for finding in found[:MOST_FINDINGS]:
        console.print()
        if len(found) > 1 or finding.headline != story.headline(report):
            show(console, styled(finding.headline, "bold"))
        write_finding(finding, console, advised)
    if rest := found[MOST_FINDINGS:]:
        console.print()
        show(console, Text("Further findings, in full in the JSON, Markdown and HTML reports:"))
        for finding in rest:
            show(console, indented(styled(finding.headline)))
    if traceback := story.traceback_of(report):
        console.print()
        show(console, Text(traceback))


def write_finding(finding: story.Finding, console: Console, advised: set[str]) -> None:
    """Write one finding below its headline; advice that an earlier one gave is not repeated."""
    for sentence in finding.sentences:
        show(console, styled(sentence))
    for title, remedy in finding.advice:
        if title not in advised:
            show(console, Text.assemble((f"What to do ({title}): ", "bold"), remedy))
            advised.add(title)
    for sentence in finding.asides:
        show(console, indented(styled(sentence, "dim")))


def write_matrix(report: Report, console: Console) -> None:
    """Write the omission matrix: words for few interruption points, signs with their key for many."""
    points, rows = grid.matrix_rows(report)
    wide = len(points) > MOST_COLUMNS
    table = Table(box=None, pad_edge=False, padding=(0, 2 if not wide else 1, 0, 0), header_style="")
    table.add_column(Text("left out"), no_wrap=True)
    if wide:
        table.add_column(Text(f"first shows when interrupted after step {words.spans(points)}"), no_wrap=True)
        for name, cells in rows:
            strip = Text.assemble(*((c.sign, CELL_STYLE[c.outcome]) if c else " " for c in cells))
            table.add_row(Text(name), strip)
    else:
        for point in points:
            table.add_column(Text(f"after {point}"), no_wrap=True)
        for name, cells in rows:
            table.add_row(Text(name), *(Text(c.word, CELL_STYLE[c.outcome]) if c else Text("") for c in cells))
    show(console, table)
    show(console, Text(grid.key(rows, signs=wide), "dim"))


def show(console: Console, inside: RenderableType) -> None:
    """Print something; nobody wants blanks at the ends of lines in a file."""
    console.print(Trimmed(inside), end="")


class Trimmed:
    """Something to print, without the blanks at the ends of its lines."""

    def __init__(self, inside: RenderableType) -> None:
        self.inside = inside

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render line by line."""
        for line in console.render_lines(self.inside, options, pad=False):
            while line and not line[-1].text.strip():
                line.pop()
            if line:
                yield from line[:-1]
                yield Segment(line[-1].text.rstrip(), line[-1].style)
            yield Segment.line()


def styled(sentence: Sentence, style: str = "") -> Text:
    """Return a sentence with the job's words set apart."""
    return Text.assemble(*((part, "cyan") if isinstance(part, Code) else part for part in sentence), style=style)


def indented(text: Text) -> Padding:
    """Return a text set in by two columns, its further lines too."""
    return Padding(text, (0, 0, 0, 2), expand=False)
