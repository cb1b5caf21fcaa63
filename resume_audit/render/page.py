"""The report as one HTML page that needs nothing else: no script, no request, light and dark."""

from html import escape
from typing import Final

from resume_audit.render import grid, plot, story, words
from resume_audit.render.words import Code, Report, Sentence

STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #f3f4f6; --rule: #c9ced6;
  --quiet: #57606a; --exact: #d5efdc; --diverges: #f9cfcb; --heals: #fbe6b3; --inert: #e6e8eb;
  --error: #e7d3f5; --line: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --paper: #14171a; --soft: #1f2428;
  --rule: #444c56; --quiet: #9aa4af; --exact: #1d4a2b; --diverges: #6e2723; --heals: #5e4a10;
  --inert: #30363d; --error: #4a2a66; --line: #ff8a80; } }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1, h2, h3 { line-height: 1.25; overflow-wrap: anywhere; } h2 { margin-top: 2rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .92em; } code { overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .75rem; overflow-x: auto; }
.verdict { border: 1px solid var(--rule); border-left: .6rem solid var(--rule); padding: .25rem 1rem; }
.verdict.exact { border-left-color: var(--exact); } .verdict.diverges { border-left-color: var(--diverges); }
.verdict.abstain { border-left-color: var(--heals); } .verdict.error { border-left-color: var(--error); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; }
th, td { border: 1px solid var(--rule); padding: .2rem .5rem; text-align: left; vertical-align: top; }
.heat td { text-align: center; }
.heat td, .heat th, .heat code { white-space: nowrap; overflow-wrap: normal; }
caption { text-align: left; color: var(--quiet); }
td.exact { background: var(--exact); } td.diverges { background: var(--diverges); }
td.heals { background: var(--heals); } td.inert { background: var(--inert); }
td.error { background: var(--error); } .quiet { color: var(--quiet); }
.advice { background: var(--soft); padding: .5rem .75rem; } table { margin-bottom: 1rem; }
figure { margin: 0; } svg { width: 100%; height: auto; } .grid { stroke: var(--rule); stroke-width: 1; }
.tick { fill: var(--quiet); font: 12px system-ui, sans-serif; } .dot { fill: var(--line); }
.line { fill: none; stroke: var(--line); stroke-width: 1.5; }
"""


def to_html(report: Report) -> str:
    """Return the report as a self-contained page.

    Args:
        report: A report as `schemas/audit.schema.json` describes it.

    Returns:
        A whole HTML document that ends in a line break; the same report gives the same text.
    """
    body = [verdict(report), section("What was run", bullets(story.what_was_run(report)))]
    if abstention := story.abstention(report):
        body.append(section("What does not repeat itself", bullets(abstention)))
    body += [finding(report, found, index) for index, found in enumerate(story.findings(report))]
    if any(row for _, row in grid.matrix_rows(report)[1]):
        body.append(section("Interruption points and components", heat_map(report)))
    if traceback := story.traceback_of(report):
        body.append(section("The job's own traceback", f"<pre>{escape(traceback)}</pre>"))
    body.append(section("To see it again", f"<pre>{escape(story.command(report))}</pre>"))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{report['verdict']}: {escape(Code(report['job']))}</title>\n<style>{STYLE}</style>\n"
        "</head>\n<body>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def verdict(report: Report) -> str:
    """Return the head of the page."""
    return (
        f'<header class="verdict {report["verdict"].lower()}">\n<h1>{report["verdict"]}</h1>\n'
        f"<p>{marked(story.headline(report))}</p>\n</header>"
    )


def finding(report: Report, found: story.Finding, index: int) -> str:
    """Return one finding: sentences, advice, plot, proof and suspects with their whole values."""
    inside = [bullets(found.sentences)]
    inside += [
        f'<p class="advice"><strong>What to do ({escape(title)}):</strong> {escape(remedy)}</p>'
        for title, remedy in found.advice
    ]
    if drawing := plot.divergence(found.resumes, report["steps"], index):
        inside += ["<h3>Divergence per step</h3>", f"<figure>{drawing}</figure>", differences(found)]
    if diagnosis := found.resumes[0]["diagnosis"]:
        rows = [("proven", entry) for entry in diagnosis["proven"]]
        rows += [("suspect", entry) for entry in diagnosis["suspects"]]
        if rows:
            when = words.interrupted(found.resumes[0]["interrupted_after"])
            inside += [
                "<h3>Suspects and proof</h3>",
                evidence(
                    rows, f"State that differs when interrupted {when}", saving=story.only_saving(found.resumes[0])
                ),
            ]
    if found.asides:
        inside += ["<h3>Apart from that</h3>", bullets(found.asides)]
    return section(marked(found.headline), "\n".join(inside))


def evidence(rows: list[tuple[str, dict[str, str]]], caption: str, *, saving: bool) -> str:
    """Return proven and suspected state with both values in full."""
    lines = [
        row(
            marked((Code(entry["path"]),)),
            cell(marked((standing, ", seen in ", Code(entry["where"])) if "where" in entry else (standing,))),
            cell(marked((Code(entry["uninterrupted"]),))),
            cell(marked((Code(entry["resumed"]),))),
        )
        for standing, entry in rows
    ]
    values = ["before the save", "after the save"] if saving else ["uninterrupted", "resumed"]
    return table(escape(caption), ["state", "standing", *values], lines)


def differences(found: story.Finding) -> str:
    """Return the numbers behind a plot, folded away."""
    lines = [
        row(
            words.interrupted(resume["interrupted_after"]),
            cell("after loading" if entry["step"] == 0 else str(entry["step"])),
            cell(words.number(entry["parameters"])),
            cell(marked(words.names(entry["outcomes"], most=None))),
        )
        for resume in found.resumes
        for entry in resume["trace"]
    ]
    head = ["interrupted", "step", "largest parameter difference", "what differs"]
    return f"<details><summary>The same as a table</summary>{table('Step by step', head, lines)}</details>"


def heat_map(report: Report) -> str:
    """Return the matrix; each cell says in words what its colour says."""
    points, rows = grid.matrix_rows(report)
    lines = [
        row(marked((name,)), *(cell(c.word, c.outcome, c.full) if c else cell("") for c in cells))
        for name, cells in rows
    ]
    used = {c.outcome for _, cells in rows for c in cells if c}
    key = [row(mark.word, cell(mark.told, mark.outcome)) for mark in grid.LEGEND if mark.outcome in used]
    told = (
        "Columns: steps completed before the interruption. Rows: what the resume was left without. "
        "Cells: the step at which it first shows."
    )
    head = ["left out", *map(str, points)]
    matrix = table("Where a lack first shows", head, lines, "heat")
    return f'<p class="quiet">{told}</p>\n{matrix}\n{table("Key", ["cell", "meaning"], key)}'


def table(caption: str, head: list[str], rows: list[str], style: str = "") -> str:
    """Return a table that scrolls by itself when it is wider than the page."""
    titles = "".join(f'<th scope="col">{title}</th>' for title in head)
    return (
        f'<div class="scroll"><table class="{style}">\n<caption>{caption}</caption>\n'
        f"<thead><tr>{titles}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody></table></div>"
    )


def row(title: str, *cells: str) -> str:
    """Return a row whose first cell, given as markup, is its heading."""
    return f'<tr><th scope="row">{title}</th>{"".join(cells)}</tr>\n'


def cell(inside: str, style: str = "", told: str = "") -> str:
    """Return a cell with its markup, and in full what a short entry means."""
    given = {"class": style, "title": escape(told)}
    attributes = "".join(f' {name}="{value}"' for name, value in given.items() if value)
    return f"<td{attributes}>{inside}</td>"


def section(title: str, inside: str) -> str:
    """Return a section under a title that is markup already."""
    return f"<section>\n<h2>{title}</h2>\n{inside}\n</section>"


def bullets(sentences: list[Sentence] | tuple[Sentence, ...]) -> str:
    """Return sentences as a list."""
    return f"<ul>\n{''.join(f'<li>{marked(sentence)}</li>' for sentence in sentences)}\n</ul>" if sentences else ""


def marked(sentence: Sentence) -> str:
    """Return a sentence with the job's words as code, everything escaped."""
    return "".join(f"<code>{escape(part)}</code>" if isinstance(part, Code) else escape(part) for part in sentence)
