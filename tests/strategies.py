"""Shared vocabulary of hypothesis strategies: tensors, nested state, and single changes to it."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

FLOAT_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COMPLEX_DTYPES = (torch.complex64, torch.complex128)
INTEGER_DTYPES = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint64)
DTYPES = (*FLOAT_DTYPES, *COMPLEX_DTYPES, *INTEGER_DTYPES, torch.bool)

numbers = st.sampled_from([0.0, -0.0, 1.0, -1.5, math.nan, math.inf, -math.inf, 1e-45, 3.4e38])
shapes = st.sampled_from([(), (0,), (1,), (3,), (2, 3), (3, 2), (1, 3), (2, 0)])


def integers_of(dtype: torch.dtype) -> st.SearchStrategy[int]:
    """All integers that the dtype holds, its limits often among them."""
    if dtype is torch.bool:
        return st.integers(0, 1)
    limits = torch.iinfo(dtype)
    return st.integers(limits.min, limits.max) | st.sampled_from([limits.min, limits.max, 0, 1])


@st.composite
def tensors(draw: st.DrawFn, dtype: torch.dtype | None = None, shape: tuple[int, ...] | None = None) -> torch.Tensor:
    """A tensor of any dtype and small shape: special floats, extreme integers, sometimes not contiguous."""
    dtype = draw(st.sampled_from(DTYPES)) if dtype is None else dtype
    shape = draw(shapes) if shape is None else shape
    count = math.prod(shape)
    if dtype.is_complex:
        values: list[Any] = draw(st.lists(st.builds(complex, numbers, numbers), min_size=count, max_size=count))
    elif dtype.is_floating_point:
        values = draw(st.lists(numbers, min_size=count, max_size=count))
    else:
        values = draw(st.lists(integers_of(dtype), min_size=count, max_size=count))
    tensor = torch.tensor(values, dtype=dtype).reshape(shape)
    if draw(st.booleans()) and tensor.dim() > 1:
        tensor = tensor.T.contiguous().T  # the same values in another memory layout
    return tensor


keys = st.text(max_size=3) | st.integers(-3, 3) | st.booleans() | st.none()
leaves = (
    tensors()
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(max_size=4)
    | st.binary(max_size=4)
    | st.sampled_from([np.float32(1.5), np.arange(3), np.zeros((2, 0)), np.float64("nan")])
)

# State as checkpoints nest it: every container kind, keys of several types, leaves of every known type.
states = st.recursive(
    leaves,
    lambda children: (
        st.lists(children, max_size=3)
        | st.lists(children, max_size=3).map(tuple)
        | st.dictionaries(keys, children, max_size=3)
        | st.dictionaries(keys, children, max_size=3).map(OrderedDict)
    ),
    max_leaves=8,
)


def rebuilt(value: Any) -> Any:
    """An equal value that shares nothing with the original and inserts dict keys in the opposite order."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return type(value)((key, rebuilt(item)) for key, item in reversed(value.items()))
    if isinstance(value, list | tuple):
        return type(value)(rebuilt(item) for item in value)
    return value.copy() if isinstance(value, np.ndarray) else value


def flipped_bit(tensor: torch.Tensor, bit: int) -> torch.Tensor:
    """A copy with one bit of its raw bytes flipped (of a bool: one value)."""
    if tensor.dtype is torch.bool:
        changed = tensor.clone().reshape(-1)
        changed[bit % len(changed)] ^= True
        return changed.reshape(tensor.shape)
    raw = tensor.contiguous().reshape(-1).view(torch.uint8).clone()
    raw[bit // 8 % len(raw)] ^= 1 << bit % 8
    return raw.view(tensor.dtype).reshape(tensor.shape)


def changed_tensor(tensor: torch.Tensor) -> list[Any]:
    """A bit of the first, second and fourth byte, the shape, the container kind, the dtype."""
    bits = [flipped_bit(tensor, bit) for bit in (0, 7, 15, 31)] if tensor.numel() else []
    dtype = torch.complex128 if tensor.dtype is torch.complex64 else torch.complex64
    return [*bits, tensor.unsqueeze(0), tensor.reshape(-1).tolist(), tensor.to(dtype)]


def changed_dict(items: dict[Any, Any]) -> list[Any]:
    """Each entry dropped, changed, and renamed; one entry more; another kind of container."""
    kind = type(items)
    changes: list[Any] = [{**items, "one more": None}, list(items.items())]
    changes.append(OrderedDict(items) if kind is dict else dict(items))
    for key, item in items.items():
        others = [pair for pair in items.items() if pair[0] is not key]
        changes += [kind(others), kind([*others, (f"{key}!", item)])]
        changes += [kind([*others, (key, changed)]) for changed in single_changes(item)]
    return changes


def changed_sequence(items: list[Any] | tuple[Any, ...]) -> list[Any]:
    """Each item dropped and changed; one item more; the other kind of container."""
    kind = type(items)
    changes: list[Any] = [kind([*items, None]), tuple(items) if kind is list else list(items)]
    for index, item in enumerate(items):
        before, after = items[:index], items[index + 1 :]
        changes.append(kind([*before, *after]))
        changes += [kind([*before, changed, *after]) for changed in single_changes(item)]
    return changes


def changed_float(value: float) -> list[Any]:
    """The sign, the last place, the type."""
    return [-value, math.nextafter(value, math.inf) if math.isfinite(value) else 0.0, str(value)]


# What can be changed in a value of each type.
CHANGES: dict[type, Callable[[Any], list[Any]]] = {
    torch.Tensor: changed_tensor,
    dict: changed_dict,
    OrderedDict: changed_dict,
    list: changed_sequence,
    tuple: changed_sequence,
    type(None): lambda _none: [False, "None"],
    bool: lambda value: [not value, int(value)],
    int: lambda value: [value + 1, str(value), *([float(value)] if abs(value) < 2**53 else [])],
    float: changed_float,
    complex: lambda value: [complex(-value.real, value.imag), complex(value.real, -value.imag), None],
    str: lambda value: [value + "!", value.encode("utf-8", "surrogatepass")],
    bytes: lambda value: [value + b"!", value.decode("latin-1")],
    np.ndarray: lambda value: [value[None], value.astype(np.complex64), value.tolist(), torch.from_numpy(value)],
    np.float32: lambda value: [value.item(), np.asarray(value), np.float16(value)],
    np.float64: lambda value: [value.item(), np.asarray(value), np.float16(value)],
}


def single_changes(value: Any) -> list[Any]:
    """All values that differ from this one in exactly one place, one for each kind of change to each place."""
    return CHANGES[type(value)](value)
