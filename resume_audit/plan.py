"""Where to interrupt, and why there."""

from __future__ import annotations

from collections.abc import Sequence

from resume_audit.options import UsageError
from resume_audit.run import Trace


def requested(points: Sequence[int], steps: int) -> list[tuple[int, str]]:
    """The points asked for, ascending. Raises UsageError where one lies outside the run."""
    wrong = [point for point in points if not 0 <= point <= steps]
    if wrong:
        raise UsageError(f"interruption point {wrong[0]} lies outside the run: it has to be between 0 and {steps}")
    return [(point, "requested") for point in sorted(set(points))]


def every(steps: int) -> list[tuple[int, str]]:
    """All points, from before the first step to after the last."""
    return [(point, "every step") for point in range(steps + 1)]


def chosen(trace: Trace, steps: int) -> list[tuple[int, str]]:
    """Five points: after the first step, before the last, and three where something is in flight."""
    if steps <= 1:
        return [(0, "before the only step")]
    points = {1: "after the first step"}
    points.setdefault(steps - 1, "before the last step")
    inner = range(2, steps - 1)
    for reason, candidates in _in_flight(trace, inner):
        fresh = [point for point in candidates if point not in points]
        if fresh and len(points) < 5:
            points[fresh[len(fresh) // 2] if reason.startswith("gradients") else fresh[0]] = reason
    while len(points) < min(5, steps - 1):  # each as far from the others as can be
        point = max(inner, key=lambda step: (min(abs(step - other) for other in points), step))
        points[point] = "spread over the run"
    return sorted(points.items())


def _in_flight(trace: Trace, inner: range) -> list[tuple[str, list[int]]]:
    flights = trace.flights
    held = [point for point in inner if flights[point].gradients]
    free = [point for point in inner if not flights[point].gradients]
    rates = [point for point in inner if flights[point].rates != flights[point + 1].rates]
    steady = [point for point in inner if flights[point].rates == flights[point + 1].rates]
    renewed: list[tuple[str, list[int]]] = []
    for name in dict.fromkeys(name for point in inner for name in flights[point].orders):
        at = [p for p in inner if flights[p].orders.get(name) != flights[p - 1].orders.get(name)]
        if at and len(at) * 2 <= len(inner):
            renewed.append((f"{name} just renewed", at))
    return [
        *([("gradients held between steps", held)] if held and free else []),
        *([("the learning rate about to change", rates)] if rates and steady else []),
        *([("the learning rate changes with every step", rates)] if rates and not steady else []),
        *renewed[:2],
    ]
