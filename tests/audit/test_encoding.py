"""The canonical encoding: equality by bits, as the experiment's own formulation has it."""

import hashlib
import importlib.util
import sys
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_audit.encoding import MANY, MANY_ITEMS, ROW, _matrix, digest, hash_bytes

EXPERIMENT = Path(__file__).parents[2] / "experiment.py"

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(width=32), st.text(max_size=3), st.binary(max_size=3),
    st.sampled_from([0.0, -0.0, 0, False, 1, 1.0, True, float("nan"), "1", b"1"]),
)  # fmt: skip
DTYPES = [torch.float32, torch.float64, torch.int64, torch.int32, torch.bool, torch.bfloat16, torch.complex64]
TENSORS = st.builds(
    lambda dtype, shape, fill: torch.full(shape, fill).to(dtype),
    st.sampled_from(DTYPES), st.sampled_from([(), (0,), (2,), (2, 3), (3, 2)]),
    st.sampled_from([0.0, -0.0, 1.0, float("nan")]),
)  # fmt: skip
KEYS = st.one_of(st.text(max_size=2), st.integers(-2, 2), st.booleans())
VALUES = st.recursive(
    st.one_of(SCALARS, TENSORS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def experiment() -> Any:
    """Return the experiment, where it stands beside this package."""
    if not EXPERIMENT.exists():
        pytest.skip("the experiment is not here to be compared with")
    spec = importlib.util.spec_from_file_location("experiment", EXPERIMENT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("experiment", module)
    spec.loader.exec_module(module)
    return module


@settings(deadline=None)
@given(one=VALUES, two=VALUES)
def test_the_experiment_says_the_same_of_two_values(experiment: Any, one: Any, two: Any) -> None:
    """Two independent formulations agree on what is equal, on values that are and on values that are not."""
    for left, right in ((one, two), (one, one), ([one, two], [two, one]), ({"a": one}, {"a": two})):
        assert (digest(left) == digest(right)) == experiment.exact_nested_equal(left, right)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (0.0, -0.0), (1, 1.0), (1, True), ([1], (1,)), ({1: 0}, {True: 0}), ({"a": 0}, {b"a": 0}), ("", b""),
        ([[], []], [[[]]]),
        (torch.zeros(2), torch.zeros(2, dtype=torch.int32)), (torch.zeros(2, 3), torch.zeros(3, 2)),
        (torch.zeros(()), 0.0),
        (torch.zeros(2), np.zeros(2, dtype=np.float32)), ({1}, frozenset({1})), ("ab", ["a", "b"]),
    ],
)  # fmt: skip
def test_what_is_not_the_same_bits_and_kind_differs(one: Any, two: Any) -> None:
    """Sign of zero, type, kind of container, type of key, dtype and shape all count."""
    assert digest(one) != digest(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (float("nan"), float("nan")), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ({1, 2, 3}, {3, 2, 1}),
        (torch.arange(6).view(2, 3).t(), torch.arange(6).view(2, 3).t().contiguous()),
        (torch.tensor(1 + 1j).conj(), torch.tensor(1 - 1j)),
    ],
)  # fmt: skip
def test_what_is_the_same_value_is_equal(one: Any, two: Any) -> None:
    """A NaN equals itself; neither the order of a dict or set nor the layout of a tensor counts."""
    assert digest(one) == digest(two)


def test_an_unknown_type_is_refused() -> None:
    """An object without an encoding is a TypeError that names its class, never a guess."""
    with pytest.raises(TypeError, match="object"):
        digest({"a": object()})


LONG = MANY + 2 * ROW + 100
"""Bytes of a tensor that is condensed, with a rest that is not."""

PLACES = st.one_of(st.integers(0, LONG - 1), st.integers(LONG - 100, LONG - 1))


@settings(deadline=None)
@given(st.lists(st.tuples(PLACES, st.integers(0, 7)), min_size=1, max_size=4, unique=True))
def test_any_bits_of_a_long_tensor_tell_it_apart(places: list[tuple[int, int]]) -> None:
    """A few bits flipped anywhere in a long tensor, in whole rows or in the rest, change the digest."""
    long = torch.arange(LONG).to(torch.uint8)
    before = digest(long)

    for place, bit in places:
        long[place] ^= 1 << bit

    assert digest(long) != before


def test_a_long_tensor_is_told_from_its_parts_in_another_order() -> None:
    """Rows exchanged, two signs flipped, and two numbers exchanged within a row each change the digest."""
    long = torch.arange(1, MANY, dtype=torch.float32)
    rows = long.view(-1)[: ROW * 4].view(4, ROW)
    exchanged, signs, swapped = (long.clone() for _ in range(3))
    exchanged[: ROW * 4] = rows[[0, 3, 2, 1]].reshape(-1)
    signs[[5, 6]] *= -1
    swapped[[5, 6]] = long[[6, 5]]

    assert len({digest(tensor) for tensor in (long, exchanged, signs, swapped)}) == 4


def test_the_products_of_a_long_tensor_are_exact() -> None:
    """The condensed rows are what whole numbers give, at the extremes too: nothing is rounded or saturates."""
    extremes = torch.tensor([-128, 127, -1], dtype=torch.int8).repeat_interleave(ROW).view(3, ROW)
    rows = torch.cat([extremes, torch.arange(ROW * 20).view(20, ROW).to(torch.int8)])
    exact = (rows.double() @ _matrix().double()).to(torch.int32)

    assert hash_bytes(rows.view(torch.uint8).view(-1)) == hashlib.sha256(exact.numpy().data).digest()


def test_a_long_array_is_the_same_whether_it_may_be_written_or_not(recwarn: pytest.WarningsRecorder) -> None:
    """An array that is read-only has the digest of one that is not, and nothing warns of it."""
    array = np.arange(MANY)
    locked = array.copy()
    locked.flags.writeable = False

    assert digest(array) == digest(locked)
    assert not recwarn.list


def test_depth_does_not_matter() -> None:
    """Ten thousand levels are encoded, and one level more is another value."""
    value: Any = 1
    for _ in range(10_000):
        value = [value]

    assert digest(value) != digest([value])


def test_a_container_that_holds_itself_is_known_by_where_it_comes_back_to() -> None:
    """Two lists that hold themselves alike are equal; coming back to another level, or to none, is another value."""

    def loop(back_to: int) -> list[Any]:
        inner: list[Any] = [1]
        outer: list[Any] = [inner, {"inner": inner}]
        inner.append((outer, inner)[back_to])
        return outer

    assert digest(loop(0)) == digest(loop(0))
    assert len({digest(value) for value in (loop(0), loop(1), [[1, None], {"inner": [1, None]}])}) == 3


@pytest.mark.parametrize("item", [-70, 70.0, 70 + 2**63, True, "70", torch.tensor(70)], ids=str)
def test_every_item_of_a_long_sequence_of_numbers_counts(item: Any) -> None:
    """A long sequence differs from one with another item, type of item, kind of container, order or length."""
    numbers = list(range(MANY_ITEMS * 2))
    another = [*numbers[:70], item, *numbers[71:]]
    exchanged = [*numbers[:70], 71, 70, *numbers[72:]]
    long = [numbers, tuple(numbers), deque(numbers), another, exchanged, numbers[:-1], list(map(float, numbers))]

    assert len({digest(value) for value in long}) == len(long)
    assert digest(numbers) == digest(list(range(MANY_ITEMS * 2)))


@pytest.mark.parametrize(("one", "two"), [(0.0, -0.0), (0.0, float("nan")), (1.0, 1), (2**63, 2**63 + 1)])
def test_a_long_sequence_of_numbers_is_compared_by_bits(one: Any, two: Any) -> None:
    """The sign of a zero, a NaN, the type and numbers beyond 64 bits are told apart in a long sequence too."""
    assert digest([one] * MANY_ITEMS) != digest([one] * (MANY_ITEMS - 1) + [two])
    assert digest([one] * MANY_ITEMS) == digest([one] * MANY_ITEMS)


def test_the_matrix_of_products_has_all_its_values() -> None:
    """Each of the 128 values of an entry comes about equally often, on which the chance of a collision rests."""
    counts = torch.bincount(_matrix().flatten().long() + 64)

    assert len(counts) == 128
    assert counts.min() > 0.8 * ROW * 16 / 128
