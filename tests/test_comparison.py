"""Equality is bitwise and an equivalence; digests agree with it; errors measure it and never hide a difference."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    COMPLEX_DTYPES,
    DTYPES,
    FLOAT_DTYPES,
    INTEGER_DTYPES,
    rebuilt,
    shapes,
    single_changes,
    states,
    tensors,
)

import experiment
from experiment import canonical_bytes, exact_nested_equal, max_nested_tensor_error, nested_tensor_items, tensor_sha256


class TestEquality:
    @given(states)
    def test_reflexive(self, value: Any) -> None:
        """A value equals itself and any rebuilt copy, whatever the order of its dicts and the layout of its tensors."""
        assert exact_nested_equal(value, value)
        assert exact_nested_equal(value, rebuilt(value))

    @given(states, states)
    def test_symmetric(self, left: Any, right: Any) -> None:
        """Equality does not depend on the side."""
        assert exact_nested_equal(left, right) == exact_nested_equal(right, left)

    @given(states)
    def test_transitive(self, value: Any) -> None:
        """Two values equal to a third are equal."""
        changes = single_changes(value)[:3]
        values = [value, rebuilt(value), *changes, *map(rebuilt, changes)]

        for a, b, c in itertools.product(values, repeat=3):
            if exact_nested_equal(a, b) and exact_nested_equal(b, c):
                assert exact_nested_equal(a, c)

    @given(states)
    def test_any_single_change_shows(self, value: Any) -> None:
        """A bit, a sign, a dtype, a shape, a key, a container kind: each single change makes another value."""
        for changed in single_changes(value):
            assert not exact_nested_equal(changed, value), (changed, value)

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            (0.0, -0.0),
            (torch.tensor(0.0), torch.tensor(-0.0)),
            (1, 1.0),
            (1, True),
            (1.0, True),
            (0, False),
            (0, None),
            ("1", 1),
            ("a", b"a"),
            ([1], (1,)),
            ({1: 0}, {1.0: 0}),
            ({1: 0}, {True: 0}),
            ({1: 0}, {"1": 0}),
            ({}, OrderedDict()),
            ([], ()),
            ([[1], 2], [[1, 2]]),
            (["a", "b"], ["ab"]),
            ([b"a", b"b"], [b"ab", b""]),
            (torch.zeros(2), torch.zeros(2, dtype=torch.int32)),
            (torch.zeros(2, 3), torch.zeros(3, 2)),
            (torch.zeros(1), torch.zeros(())),
            (torch.zeros(0), torch.zeros(0, 2)),
            (torch.zeros(2), np.zeros(2, dtype=np.float32)),
            (torch.zeros(2, dtype=torch.float16), torch.zeros(2, dtype=torch.bfloat16)),
            (np.float32(1), np.float64(1)),
            (np.float64(1), 1.0),
            (np.zeros(1), np.float64(0)),
            (np.zeros(2, dtype="<f4"), np.zeros(2, dtype=">f4")),
        ],
    )
    def test_look_alikes_differ(self, left: object, right: object) -> None:
        """Values that Python or torch call equal, or that print alike, are told apart."""
        assert not exact_nested_equal(left, right)
        assert not exact_nested_equal([left], [right])

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            (math.nan, math.nan),
            (torch.tensor([math.nan]), torch.tensor([math.nan])),
            ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
            (torch.arange(6).reshape(2, 3).T, torch.arange(6).reshape(2, 3).T.contiguous()),
            (torch.ones(3).expand(2, 3), torch.ones(2, 3)),
            (torch.ones(2, dtype=torch.complex64).conj(), torch.ones(2, dtype=torch.complex64).conj_physical()),
            (torch.nn.Parameter(torch.ones(2)), torch.ones(2)),
            (torch.ones(2, requires_grad=True), torch.ones(2)),
        ],
    )
    def test_equal_state(self, left: object, right: object) -> None:
        """A NaN equals itself; memory layout, the order of a dict and gradient bookkeeping are not state."""
        assert exact_nested_equal(left, right)

    @given(states, states)
    def test_no_encoding_begins_another(self, left: Any, right: Any) -> None:
        """No encoding is the beginning of another, so what follows a value can never pass for a part of it."""
        a, b = canonical_bytes(left), canonical_bytes(right)

        assert a == b or not (a.startswith(b) or b.startswith(a))

    @pytest.mark.parametrize(("left", "right"), [("a", "ab"), (b"", b"a"), (1, 16), ([0], [0, 0])])
    def test_no_encoding_begins_a_longer_one(self, left: object, right: object) -> None:
        """The same for values of which one is the beginning of the other."""
        assert not canonical_bytes(right).startswith(canonical_bytes(left))

    def test_nan_payloads_differ(self) -> None:
        """Two NaNs of other bits are other values."""
        bits = torch.tensor([0x7FC00000, 0x7FC00001], dtype=torch.int32).view(torch.float32)

        assert not exact_nested_equal(bits[:1], bits[1:])

    @pytest.mark.parametrize(
        "value",
        [
            {1, 2},
            object(),
            torch.float32,
            torch.Size([1]),
            np.array([None]),
            np.zeros(1, dtype=[("a", "f4")]),
            np.longdouble(1),
            torch.zeros(2).to_sparse(),
            torch.zeros(2, device="meta"),
            range(3),
            bytearray(b"a"),
            type("MyFloat", (float,), {})(1.0),
            type("MyDict", (dict,), {})(),
            torch.zeros(2).as_subclass(type("MyTensor", (torch.Tensor,), {})),
        ],
    )
    def test_unknown_types(self, value: object) -> None:
        """A type that is not known is a `TypeError`, on either side and at any depth, never a guess."""
        for nested in (value, [value], {"a": (value,)}):
            with pytest.raises(TypeError, match="cannot encode a"):
                exact_nested_equal(nested, nested)
            with pytest.raises(TypeError, match="cannot encode a"):
                exact_nested_equal(None, nested)
            with pytest.raises(TypeError, match="cannot encode a"):
                max_nested_tensor_error(nested, nested)


class TestDigests:
    @given(tensors(), tensors())
    def test_tensor_digest_agrees_with_equality(self, left: torch.Tensor, right: torch.Tensor) -> None:
        """Equal digests mean equal tensors, and the other way round."""
        assert (tensor_sha256(left) == tensor_sha256(right)) is exact_nested_equal(left, right)

    @given(tensors(), st.integers(0, 63))
    def test_tensor_digest_sees_every_change(self, tensor: torch.Tensor, index: int) -> None:
        """A changed tensor has another digest, a copy the same."""
        changes = [change for change in single_changes(tensor) if isinstance(change, torch.Tensor)]

        assert tensor_sha256(tensor.clone()) == tensor_sha256(tensor)
        assert tensor_sha256(changes[index % len(changes)]) != tensor_sha256(tensor)

    @given(states)
    def test_digest_is_the_hash_of_the_encoding(self, value: Any) -> None:
        """The digest of nested state is the hash of its encoding."""
        assert experiment.sha256(value) == hashlib.sha256(canonical_bytes(value)).hexdigest()

    def test_model_hash(self) -> None:
        """A model's digest depends on its names and bits, not on the order of its modules or on gradients."""
        model = experiment.make_job(11).model
        state = dict(model.state_dict())

        assert experiment.model_hash(model) == experiment.sha256(dict(reversed(state.items())))
        model.input.weight.grad = torch.ones_like(model.input.weight)
        assert experiment.model_hash(model) == experiment.sha256(state)
        with torch.no_grad():
            model.output.bias[0] = -model.output.bias[0]
        assert experiment.model_hash(model) != experiment.sha256(experiment.read_model(experiment.make_job(11)))

    def test_model_vector(self) -> None:
        """The vector holds all 195 parameters in order, and is a copy."""
        model = experiment.make_job(11).model
        vector = experiment.model_vector(model)

        assert vector.shape == (195,)
        assert torch.equal(vector[:128], model.input.weight.detach().flatten())
        vector.zero_()
        assert model.input.weight.abs().sum() > 0


class TestPaths:
    def test_paths(self) -> None:
        """Paths name keys by dots and positions by brackets, keys sorted by their text."""
        a, b, c, d = (torch.tensor(float(value)) for value in range(4))

        items = nested_tensor_items(
            {"state": {10: {"exp_avg": c}, 2: {"exp_avg": b}}, "a": [None, (a,)], "z": 1, "s": d}
        )

        assert items == [("a[1][0]", a), ("s", d), ("state.10.exp_avg", c), ("state.2.exp_avg", b)]

    def test_prefix(self) -> None:
        """A prefix stands before each path, and alone for a tensor itself."""
        tensor = torch.zeros(1)

        assert nested_tensor_items(tensor, "model") == [("model", tensor)]
        assert nested_tensor_items({"w": [tensor]}, "model") == [("model.w[0]", tensor)]
        assert nested_tensor_items({"w": 3}) == []


@st.composite
def tensor_pairs(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor]:
    """Two tensors of one dtype and shape."""
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(shapes)
    return draw(tensors(dtype=dtype, shape=shape)), draw(tensors(dtype=dtype, shape=shape))


def numerically_equal(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether all values are equal as numbers, a NaN to a NaN, by Python's own arithmetic."""

    def part_equal(a: Any, b: Any) -> bool:
        if isinstance(a, complex):
            return part_equal(a.real, b.real) and part_equal(a.imag, b.imag)
        return bool(a == b or (math.isnan(a) and math.isnan(b)))

    return all(map(part_equal, left.reshape(-1).tolist(), right.reshape(-1).tolist()))


class TestError:
    @given(tensor_pairs())
    def test_symmetric(self, pair: tuple[torch.Tensor, torch.Tensor]) -> None:
        """The error does not depend on the side, and is no NaN and not negative."""
        left, right = pair

        error = max_nested_tensor_error(left, right)

        assert error == max_nested_tensor_error(right, left)
        assert error >= 0

    @given(states, states)
    def test_symmetric_on_nested_state(self, left: Any, right: Any) -> None:
        """The same holds for nested state of any two structures."""
        assert max_nested_tensor_error(left, right) == max_nested_tensor_error(right, left)

    @given(tensor_pairs())
    def test_zero_exactly_when_numerically_equal(self, pair: tuple[torch.Tensor, torch.Tensor]) -> None:
        """The error is 0 exactly when all values are equal as numbers."""
        assert (max_nested_tensor_error(*pair) == 0) is numerically_equal(*pair)

    @given(states)
    def test_zero_on_equal_state(self, value: Any) -> None:
        """Equal state has no error."""
        assert max_nested_tensor_error(value, rebuilt(value)) == 0

    @given(states)
    def test_never_hides_a_change(self, value: Any) -> None:
        """A changed value has an error, but for a change of bits that is none of numbers."""
        for changed in single_changes(value):
            if max_nested_tensor_error(changed, value) == 0:
                assert numerically_alike(changed, value)

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            (torch.zeros(2), torch.zeros(3)),
            (torch.zeros(2, 3), torch.zeros(3, 2)),
            (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
            (torch.zeros(2), [0.0, 0.0]),
            (torch.zeros(2), None),
            ([torch.zeros(2)], (torch.zeros(2),)),
            ([torch.zeros(2)], [torch.zeros(2)] * 2),
            ({"a": torch.zeros(2)}, {"b": torch.zeros(2)}),
            ({1: torch.zeros(2)}, {True: torch.zeros(2)}),
            ({"a": torch.zeros(2)}, {"a": torch.zeros(2), "b": torch.zeros(2)}),
            ({(1,): torch.zeros(2)}, {(True,): torch.zeros(2)}),
            ("a", "b"),
            (1, 1.0),
            *((torch.tensor([math.nan, 0]), torch.tensor([value, 0])) for value in (0.0, math.inf)),
            (torch.tensor([math.inf]), torch.tensor([-math.inf])),
            (torch.tensor([math.inf]), torch.tensor([0.0])),
            (torch.tensor([complex(0, math.nan)]), torch.tensor([complex(math.nan, 0)])),
        ],
    )
    def test_infinite(self, left: object, right: object) -> None:
        """Another structure, shape or dtype, one NaN, unlike infinities: the error is infinite, at any depth."""
        assert max_nested_tensor_error(left, right) == math.inf
        assert max_nested_tensor_error({"x": [left, 0]}, {"x": [right, 0]}) == math.inf

    @pytest.mark.parametrize(
        ("left", "right", "error"),
        [
            (torch.tensor([2**62]), torch.tensor([2**62 - 1]), 1.0),
            (torch.tensor([-(2**63)]), torch.tensor([2**63 - 1]), float(2**64 - 1)),
            (torch.tensor([2**64 - 1], dtype=torch.uint64), torch.tensor([0], dtype=torch.uint64), float(2**64 - 1)),
            (torch.tensor([0], dtype=torch.uint8), torch.tensor([255], dtype=torch.uint8), 255.0),
            (torch.tensor([True]), torch.tensor([False]), 1.0),
            (torch.tensor([3 + 4j]), torch.tensor([0j]), 5.0),
            (torch.tensor([1.0], dtype=torch.bfloat16), torch.tensor([1.0078125], dtype=torch.bfloat16), 0.0078125),
            (torch.tensor([math.inf, 1.0]), torch.tensor([math.inf, 3.0]), 2.0),
            (torch.tensor([math.nan, 1.0]), torch.tensor([math.nan, 1.5]), 0.5),
            (torch.tensor([0.0]), torch.tensor([-0.0]), 0.0),
            (torch.tensor([1e-45]), torch.tensor([0.0]), float(np.float32(1e-45))),
            (torch.zeros(0), torch.zeros(0), 0.0),
            ({math.nan: torch.zeros(1)}, {float("nan"): torch.ones(1)}, 1.0),
            (1.5e308 + 1.5e308j, 0j, math.inf),
            ([torch.zeros(2), torch.ones(2)], [torch.zeros(2), torch.ones(2) * 3], 2.0),
            (10**400, 0, math.inf),
            (2**60, 2**60 + 1, 1.0),
            (0.25, 1.0, 0.75),
        ],
    )
    def test_measured_rightly(self, left: object, right: object, error: float) -> None:
        """Large integers, complex numbers, small floats, infinities and NaNs on both sides are measured as they are."""
        assert max_nested_tensor_error(left, right) == error

    @given(st.sampled_from([*FLOAT_DTYPES, *COMPLEX_DTYPES, *INTEGER_DTYPES]), st.integers(0, 100), st.integers(0, 100))
    def test_distance_of_small_integers(self, dtype: torch.dtype, left: int, right: int) -> None:
        """In every dtype the error of two small integers is their distance."""
        a, b = torch.tensor([left], dtype=dtype), torch.tensor([right], dtype=dtype)

        assert max_nested_tensor_error(a, b) == abs(left - right)


def numerically_alike(left: Any, right: Any) -> bool:
    """Whether two nested values have one structure and equal numbers, only their bits being others."""
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and left.shape == right.shape and numerically_equal(left, right)
    if isinstance(left, dict):
        return type(left) is type(right) and all(numerically_alike(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return type(left) is type(right) and all(map(numerically_alike, left, right))
    if isinstance(left, float | complex):
        return numerically_equal(torch.tensor([left]), torch.tensor([right]))
    return type(left) is type(right) and exact_nested_equal(left, right)


class TestCompareSnapshots:
    def test_same(self, reference: dict[int, dict[str, Any]]) -> None:
        """A snapshot compared with itself has seven times true and three times 0."""
        comparison = experiment.compare_snapshots(reference[12], reference[12])

        assert list(comparison) == [*experiment.EXACT_FIELDS, *experiment.ERROR_FIELDS]
        assert list(comparison.values()) == [True] * 7 + [0.0] * 3

    @pytest.mark.parametrize("name", experiment.COMPARED_COMPONENTS)
    def test_each_component_alone(self, reference: dict[int, dict[str, Any]], name: str) -> None:
        """A component that differs is told, and only that one."""
        changed = reference[12] | {name: reference[11][name] if name != "gradients" else {}}

        comparison = experiment.compare_snapshots(changed, reference[12])

        assert [field for field in experiment.EXACT_FIELDS if not comparison[field]] == [f"{name}_exact"]

    def test_snapshot_fields(self, reference: dict[int, dict[str, Any]]) -> None:
        """A reference has a snapshot for each update, 0 to 12, with the documented fields."""
        assert list(reference) == list(range(13))
        assert set(reference[0]) == {
            *("optimizer_step", "global_microstep", "microstep_in_accumulation", "model", "optimizer", "scheduler"),
            *("stream", "rng", "gradients", "model_vector", "model_hash", "next_batch_ids", "learning_rate"),
            *("last_batch_ids", "last_loss"),
        }
