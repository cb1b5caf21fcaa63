"""Divergence per step as an inline SVG: a logarithmic axis, exact zero below it and `inf` above."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any, Final

from resume_audit.render import words

WIDTH: Final = 760  # all lengths in SVG user units
HEIGHT: Final = 300
LEFT, RIGHT, TOP, BOTTOM = 74, 16, 34, 44
BAND: Final = 34  # between the axis and the lines of zero and of inf
MOST_TICKS: Final = 7


def divergence(resumes: Sequence[dict[str, Any]], steps: int, number: int) -> str:
    """Draw the largest parameter difference of each resume against the steps of the uninterrupted run.

    A line begins at its last interruption, which tells the lines apart; the state right after loading is its
    first point. Steps without a measured difference interrupt a line.

    Args:
        resumes: Entries of a report's `resumes`.
        steps: Length of the uninterrupted run, in steps.
        number: Distinguishes the ids of several plots on one page.

    Returns:
        An `<svg>` element with title and description, or nothing where no difference was measured.
    """
    lines = [points for resume in resumes if (points := series(resume))]
    values = [value for line in lines for _, value in line if value is not None]
    if not values:
        return ""
    finite = [value for value in values if 0 < value < math.inf]
    low = math.floor(math.log10(min(finite))) if finite else -8
    high = max(math.ceil(math.log10(max(finite))) if finite else 0, low + 1)
    zero, top = HEIGHT - BOTTOM, TOP + (BAND if math.inf in values else 0)
    bottom = zero - BAND

    def x_of(step: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / max(steps, 1)

    def y_of(value: float) -> float:
        if value == 0:
            return zero
        if value == math.inf:
            return TOP
        return bottom - (bottom - top) * (math.log10(value) - low) / (high - low)

    parts = [grid_line(y_of(0), "0"), *([grid_line(TOP, "not comparable")] if math.inf in values else [])]
    every = max(1, math.ceil((high - low) / MOST_TICKS))
    parts += [grid_line(y_of(10.0**power), f"1e{power}") for power in range(low, high + 1, every)]
    stride = max(1, math.ceil(steps / 12))
    for step in range(0, steps + 1, stride):
        parts.append(f'<text class="tick" x="{x_of(step):.1f}" y="{zero + 18}" text-anchor="middle">{step}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text class="tick" x="{middle:.1f}" y="{HEIGHT - 6}" text-anchor="middle">step</text>')
    parts += [drawn([(x_of(s), None if v is None else y_of(v)) for s, v in line]) for line in lines]
    title = "Largest parameter difference at each step"
    told = "; ".join(described(resume) for resume in resumes[:8])
    named = f"plot{number}-title plot{number}-told"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{named}">'
        f'<title id="plot{number}-title">{title}</title>'
        f'<desc id="plot{number}-told">{escape(told)}</desc>'
        f"{label(LEFT, 14, 'start', f'{title}; exact zero on its own line')}{''.join(parts)}</svg>"
    )


def series(resume: dict[str, Any]) -> list[tuple[int, float | None]]:
    """Return (step, difference) along a resume, the state right after loading at its last interruption."""
    start = resume["interrupted_after"][-1]
    return [
        (entry["step"] or start, None if entry["parameters"] is None else float(entry["parameters"]))
        for entry in resume["trace"]
    ]


def described(resume: dict[str, Any]) -> str:
    """Return a resume's course in words."""
    shown = [(step, value) for step, value in series(resume) if value is not None]
    where = f"interrupted {words.interrupted(resume['interrupted_after'])}"
    differing = [(step, value) for step, value in shown if value]
    if not differing:
        return f"{where}: no parameter differs"
    (first, begin), (last, end) = differing[0], shown[-1]
    return f"{where}: {value_of(begin)} at step {first}, {value_of(end)} at step {last}"


def value_of(value: float) -> str:
    """Return a difference as text."""
    return words.number("inf" if value == math.inf else value)


def grid_line(y: float, value: str) -> str:
    """Return a horizontal line with its label."""
    line = f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return line + label(LEFT - 8, y + 4, "end", value)


def label(x: float, y: float, anchor: str, text: str) -> str:
    """Return a text of the axes."""
    return f'<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def drawn(points: list[tuple[float, float | None]]) -> str:
    """Return the strokes and dots of one resume."""
    strokes: list[list[str]] = [[]]
    dots = []
    for x, y in points:
        if y is None:
            strokes.append([])
            continue
        strokes[-1].append(f"{x:.1f},{y:.1f}")
        dots.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>')
    drawn_strokes = [f'<polyline class="line" points="{" ".join(s)}"/>' for s in strokes if len(s) > 1]
    return "".join(drawn_strokes + dots)
