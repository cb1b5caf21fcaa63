"""What a run measures: how far apart two states are, what is in flight, which metrics are numbers."""

import math
from typing import Any

import pytest
import torch
from jobs import Part
from torch import nn

from resume_audit import Job
from resume_audit.run import AT_ONCE, flight, floating_tensors, largest_difference, plain_numbers

LONG = torch.zeros(AT_ONCE + 3)


def far_at(place: int, value: float) -> torch.Tensor:
    """Return a tensor that is compared in two pieces, and differs from zeros at one place."""
    tensor = LONG.clone()
    tensor[place] = value
    return tensor


@pytest.mark.parametrize(
    ("ours", "theirs", "gap"),
    [
        ({}, {}, None),
        ({"a": torch.tensor([1.0, 2.0])}, {"a": torch.tensor([1.0, -2.0])}, 4.0),
        ({"a": torch.tensor([math.nan, math.inf])}, {"a": torch.tensor([math.nan, math.inf])}, 0.0),
        ({"a": torch.tensor([math.nan])}, {"a": torch.tensor([1.0])}, math.inf),
        ({"a": torch.tensor([math.inf])}, {"a": torch.tensor([-math.inf])}, math.inf),
        ({"a": torch.zeros(2)}, {"a": torch.zeros(3)}, math.inf),
        ({"a": torch.zeros(2)}, {"a": torch.zeros(2, dtype=torch.float64)}, math.inf),
        ({"a": torch.zeros(2)}, {"b": torch.zeros(2)}, math.inf),
        ({"a": torch.zeros(0)}, {"a": torch.zeros(0)}, 0.0),
        ({"a": torch.tensor([3 + 4j])}, {"a": torch.tensor([0j])}, 5.0),
        ({"a": LONG}, {"a": far_at(0, -2.0)}, 2.0),
        ({"a": LONG}, {"a": far_at(-1, 3.0)}, 3.0),
        ({"a": torch.zeros(1), "b": torch.ones(1)}, {"a": torch.ones(1), "b": torch.ones(1)}, 1.0),
    ],
    ids=str,
)
def test_the_largest_difference_of_any_element(ours: Any, theirs: Any, gap: float | None) -> None:
    """The largest absolute difference, infinite where nothing can be compared; a NaN does not differ from a NaN."""
    assert largest_difference(ours, theirs) == gap
    assert largest_difference(theirs, ours) == gap


def test_floating_tensors_are_found_wherever_they_lie() -> None:
    """Tensors of floating point, in whatever containers, by their path; one that holds itself is no trap."""
    state: dict[str, Any] = {"list": [torch.ones(1), (torch.ones(2), torch.ones(1, dtype=torch.int64))], "text": "a"}
    state["self"] = state

    found = floating_tensors(Job({"part": Part(lambda: state)}, lambda: None))

    assert {path: tuple(tensor.shape) for path, tensor in found.items()} == {"part.list.0": (1,), "part.list.1.0": (2,)}


def test_what_is_in_flight() -> None:
    """Gradients that are not zero, the rates in force, and small pieces of state that may be the order of the data."""
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    state = {"order": torch.arange(4), "features": torch.zeros(20_000), "epoch": 3, "name": "a", "ratio": 0.5}
    job = Job({"model": model, "optimizer": optimizer, "loader": Part(lambda: state)}, lambda: None)

    before = flight(job)
    model(torch.ones(1, 1)).sum().backward()
    after = flight(job)

    assert (before.gradients, after.gradients) == (False, True)
    assert before.rates == (0.5,)
    assert set(before.orders) == {"loader.order", "loader.epoch", "loader.name"}


def test_gradients_of_an_optimizer_alone_are_in_flight() -> None:
    """Parameters that no module holds count by the optimizer that steps them; zeros do not."""
    parameter = nn.Parameter(torch.ones(2))
    job = Job({"optimizer": torch.optim.SGD([parameter], lr=0.5)}, lambda: None)

    parameter.grad = torch.zeros(2)
    zeros = flight(job).gradients
    parameter.grad = torch.ones(2)

    assert (zeros, flight(job).gradients) == (False, True)


def test_metrics_that_are_numbers() -> None:
    """Numbers of any kind are kept as such; what is none is left to the digests."""
    assert plain_numbers({"a": 1, "b": torch.tensor(2.0), "c": "text", "d": None, "e": 10**400}) == {"a": 1.0, "b": 2.0}
