"""The canonical encoding: equality by bits, as the experiment's own formulation has it."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_audit.encoding import CHUNK, digest

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


def test_a_long_tensor_is_told_apart_in_every_chunk() -> None:
    """A single bit in the last chunk of a long tensor changes the digest."""
    long = torch.zeros(CHUNK, dtype=torch.int16)
    before = digest(long)

    long[-1] = 1

    assert digest(long) != before


def test_depth_does_not_matter() -> None:
    """Ten thousand levels are encoded; a container that holds itself is refused."""
    value: Any = 1
    for _ in range(10_000):
        value = [value]
    assert digest(value) != digest([value])

    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="itself"):
        digest(loop)
