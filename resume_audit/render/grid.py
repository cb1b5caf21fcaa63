"""The omission matrix as a grid of cells, each in a word, in one character, and in full."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from resume_audit.render.words import Code, Report, counted, visible


@dataclass(frozen=True)
class Cell:
    """One cell of the matrix, in a word or number, in one character, and in full."""

    outcome: str
    word: str
    sign: str
    full: str


class Mark(NamedTuple):
    """What an entry of the matrix says: as a word, and in a wide matrix as one character."""

    outcome: str
    word: str
    told: str
    sign: str
    sign_told: str


AGREES: Final = "every outcome agrees"
FIRST_SHOWS: Final = "step at which it first shows, to differ to the end"
SHOWS_AFTER: Final = "first shows that many steps after the interruption, to differ to the end; + = later than 9"
INERT: Final = "no effect from here on, which is no pass"
RAISED: Final = "loading or a later step raised"
LEGEND: Final = (
    Mark("exact", "exact", AGREES, "=", AGREES),
    Mark("diverges", "number", FIRST_SHOWS, "1 to 9", SHOWS_AFTER),
    Mark("heals", "heals", "differs for that many steps only", "h", "differs for a while only"),
    Mark("inert", "inert", INERT, "·", INERT),
    Mark("error", "error", RAISED, "E", RAISED),
)
SIGNS: Final = {mark.outcome: mark.sign for mark in LEGEND}
NOTHING: Final = "(nothing left out)"


def matrix_rows(report: Report) -> tuple[list[int], list[tuple[str, list[Cell | None]]]]:
    """Return the interruption points and, per row, a name and one cell per point.

    The first row is the resume with nothing left out, the others leave out one component each. A cell is None
    where there was no such run.
    """
    full = {r["interrupted_after"][0]: r for r in report["resumes"] if len(r["interrupted_after"]) == 1}
    omitted: dict[str, dict[int, dict[str, Any]]] = {}
    for cell in report["matrix"] or ():
        omitted.setdefault(cell["component"], {})[cell["interrupted_after"]] = cell
    points = sorted(set(full).union(*omitted.values()))
    rows = [(NOTHING, [full_cell(full[p]) if p in full else None for p in points])]
    rows += [
        (Code(name), [omission_cell(cells[p]) if p in cells else None for p in points])
        for name, cells in omitted.items()
    ]
    return points, rows


def key(rows: list[tuple[str, list[Cell | None]]], *, signs: bool = False) -> str:
    """Return what the entries of a matrix mean, as far as they occur."""
    used = {cell.outcome for _, cells in rows for cell in cells if cell}
    marks = [mark for mark in LEGEND if mark.outcome in used]
    return "; ".join(f"{m.sign} = {m.sign_told}" if signs else f"{m.word} = {m.told}" for m in marks)


def delay(step: int, after: int) -> str:
    """Return how many steps after the interruption something shows, in one character."""
    return str(step - after) if 0 <= step - after <= 9 else "+"


def full_cell(resume: dict[str, Any]) -> Cell:
    """Return the cell of a resume with nothing left out."""
    if resume["verdict"] == "EXACT":
        return Cell("exact", "exact", SIGNS["exact"], "exact")
    if resume["verdict"] == "ERROR":
        return Cell("error", "error", SIGNS["error"], "error")
    after = resume["interrupted_after"][-1]
    seen = (resume["moments"] or {}).get("first_visible") or resume["first_divergence"]
    if resume["healed_after"] is not None and seen:
        span = max(1, resume["healed_after"] - max(seen["step"], 1) + 1)
        return Cell("heals", f"{seen['step']} heals {span}", SIGNS["heals"], f"differs for {counted(span, 'step')}")
    if seen:
        sign = delay(seen["step"] or after, after)
        return Cell("diverges", str(seen["step"]), sign, f"differs from step {seen['step']} on")
    return Cell("diverges", "differs", "?", "differs")


def omission_cell(cell: dict[str, Any]) -> Cell:
    """Return the cell of a resume without one component."""
    outcome, step, span = cell["outcome"], cell["first_step"], cell["span"]
    word = {
        "diverges": f"{step}",
        "heals": f"{step} heals {span}",
        "inert": "inert",
        "error": "error",
    }[outcome]
    full = {
        "diverges": f"differs from step {step} on",
        "heals": f"differs from step {step}, for {counted(span or 1, 'step')}",
        "inert": "no effect from here on",
        "error": f"error: {visible(cell['message'] or '')}",
    }[outcome]
    sign = delay(step, cell["interrupted_after"]) if outcome == "diverges" else SIGNS[outcome]
    return Cell(outcome, word, sign, full)
