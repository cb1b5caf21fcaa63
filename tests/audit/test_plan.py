"""Where to interrupt when nobody says where."""

import pytest

from resume_audit.options import UsageError
from resume_audit.plan import chosen, every, requested
from resume_audit.run import Flight, Trace

STEPS = 12


def trace(
    held: tuple[int, ...] = (), rate_falls_after: tuple[int, ...] = (), renewed_at: tuple[int, ...] = ()
) -> Trace:
    """Return a baseline that holds gradients after some steps, changes its rate after some, its data order at some."""
    return Trace(
        flights={
            step: Flight(
                gradients=step in held,
                rates=(0.5 ** sum(after < step for after in rate_falls_after),),
                orders={"loader.order": str(sum(at <= step for at in renewed_at))},
            )
            for step in range(1, STEPS + 1)
        }
    )


def reasons(baseline: Trace, steps: int = STEPS) -> dict[int, str]:
    """Return the chosen points with their reasons."""
    return dict(chosen(baseline, steps))


def test_what_is_in_flight_is_interrupted() -> None:
    """Gradients held, a rate about to change and an order just renewed each get a point, beside the first and last."""
    points = reasons(trace(held=(3, 4, 5), rate_falls_after=(7,), renewed_at=(9,)))

    assert points == {
        1: "after the first step",
        4: "gradients held between steps",
        7: "the learning rate about to change",
        9: "loader.order just renewed",
        11: "before the last step",
    }


def test_a_run_with_nothing_in_flight_is_interrupted_evenly() -> None:
    """Where nothing is in flight the three inner points are spread over the run."""
    points = reasons(trace())

    assert list(points) == [1, 4, 6, 9, 11]
    assert {points[step] for step in points if 1 < step < 11} == {"spread over the run"}


def test_what_never_changes_is_no_reason() -> None:
    """Gradients held after every step, and an order that is another at every step, say nothing of a moment."""
    points = reasons(trace(held=tuple(range(1, STEPS)), renewed_at=tuple(range(1, STEPS))))

    assert {points[step] for step in points if 1 < step < 11} == {"spread over the run"}


@pytest.mark.parametrize(("steps", "points"), [(1, [0]), (2, [1]), (3, [1, 2]), (4, [1, 2, 3])])
def test_a_short_run_has_fewer_points(steps: int, points: list[int]) -> None:
    """A run of a step is interrupted before it, a longer one wherever it can be, up to five points."""
    assert list(reasons(trace(), steps)) == points


def test_points_asked_for_are_sorted_and_told_once() -> None:
    """Both ends of the run may be asked for; every step is all of them."""
    assert [after for after, _ in requested([STEPS, 3, 0, 3], STEPS)] == [0, 3, STEPS]
    assert [after for after, _ in every(STEPS)] == list(range(STEPS + 1))


@pytest.mark.parametrize("point", [-1, STEPS + 1])
def test_a_point_outside_the_run_is_refused(point: int) -> None:
    """A point before the run or after it is named, with the range that is allowed."""
    with pytest.raises(UsageError, match=rf"{point} lies outside .* between 0 and {STEPS}"):
        requested([3, point], STEPS)
