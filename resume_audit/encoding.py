"""One canonical encoding of nested state, and its digest.

Two values are equal exactly when their encodings are: type, dtype, shape and raw bytes count, so do the kind
of a container and the type of a key; the order of a dict does not. `0.0` and `-0.0` differ, a NaN equals
itself, `1`, `1.0` and `True` are three values. A type that is not known is a `TypeError`, never a guess.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import hashlib
import pathlib
import struct
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
import torch

Unknown = Callable[[Any], bytes]
"""What to do with a value of a type that has no encoding: give its bytes, or raise."""

ROW = 4096
"""Bytes that are multiplied into sixteen 32-bit sums."""

MANY_ITEMS = 64
"""Items from which on a sequence of numbers is encoded as one array."""

MANY = 16 * ROW
"""Bytes from which on multiplying is faster than SHA-256 alone."""


def digest(value: Any, unknown: Unknown | None = None) -> str:
    """SHA-256 of the canonical encoding of `value`, in hexadecimal.

    Raises TypeError for a value of a type that has no encoding, unless `unknown` gives its bytes.
    """
    hasher = hashlib.sha256()
    for part in encode(value, unknown):
        hasher.update(part)
    return hasher.hexdigest()


def encode(value: Any, unknown: Unknown | None = None) -> Iterator[bytes]:
    """The canonical encoding of `value` in parts; without recursion, so that depth does not matter."""
    stack: list[Iterator[bytes | _Inner]] = [iter((_Inner(value),))]
    inside: dict[int, int] = {}  # the depth of each container being written, in the order in which they are nested
    while stack:
        part = next(stack[-1], None)
        if part is None:
            stack.pop()
            if inside:
                inside.popitem()
        elif isinstance(part, bytes):
            yield part
        else:
            scalar = _scalar(part.value)
            if scalar is not None:
                yield scalar
                continue
            if id(part.value) in inside:  # it holds itself: how many levels further up is all there is to say
                yield _frame("again", str(len(inside) - inside[id(part.value)]).encode())
                continue
            inside[id(part.value)] = len(inside)
            stack.append(_container(part.value, unknown))


def flat_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The raw bytes of a strided tensor in row-major order: uint8, 1-d, without a copy where it lies so already."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return plain.reshape(-1).view(torch.uint8)


def hash_bytes(buffer: torch.Tensor) -> bytes:
    """SHA-256 of bytes (uint8, 1-d); of many, that of their exact products with a random matrix, row by row.

    A model is looked at after every step, and SHA-256 alone takes longer than the step. A row that differs has the same
    product with one chance in 2**112: for each column, whatever the other entries are, at most one of its 128 values
    lets the difference vanish (universal hashing, after Carter and Wegman, 1979).
    """
    whole = buffer.numel() // ROW * ROW if buffer.numel() >= MANY else 0
    hasher = hashlib.sha256()
    if whole:
        products = torch._int_mm(buffer[:whole].view(torch.int8).view(-1, ROW), _matrix())
        hasher.update(products.numpy().data)
    hasher.update(buffer[whole:].numpy().data)
    return hasher.digest()


@cache
def _matrix() -> torch.Tensor:
    """The random matrix: int8, of shape (ROW, 16).

    Seven bits an entry, so that a sum of two products fits into 16 bits, in which processors without VNNI form it.
    """
    generator = torch.Generator(device="cpu").manual_seed(0)
    return torch.randint(-64, 64, (ROW, 16), generator=generator, dtype=torch.int8, device="cpu")


class _Inner:
    """A value within a container, yet to be encoded."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _frame(tag: str, body: bytes) -> bytes:
    """A tagged, length-prefixed piece: no two sequences of pieces run together."""
    return tag.encode() + b":" + struct.pack("<Q", len(body)) + body


def _type_name(value: Any) -> bytes:
    return f"{type(value).__module__}.{type(value).__qualname__}".encode()


def _scalar(value: Any) -> bytes | None:
    """The encoding of a value without parts; None for any other."""
    kind = type(value)
    if value is None:
        return b"none;"
    if kind is bool:
        return b"true;" if value else b"false;"
    if kind is int:
        return _frame("int", str(value).encode() if -(2**63) <= value < 2**63 else hex(value).encode())
    if kind is float:
        return _frame("float", struct.pack("<d", value))
    if kind is complex:
        return _frame("complex", struct.pack("<dd", value.real, value.imag))
    if kind is str:
        return _frame("str", value.encode("utf-8", "surrogatepass"))
    if kind in (bytes, bytearray):
        return _frame(kind.__name__, bytes(value))
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, np.generic):
        return _frame("numpy", str(value.dtype).encode() + b"|" + value.tobytes())
    if kind in _NAMED:
        return _frame(kind.__name__, repr(value).encode())
    if isinstance(value, pathlib.PurePath):
        return _frame("path", str(value).encode("utf-8", "surrogateescape"))
    if isinstance(value, enum.Enum):
        return _frame("enum", _type_name(value) + b"." + value.name.encode())
    if isinstance(value, type):
        return _frame("type", f"{value.__module__}.{value.__qualname__}".encode())
    return None


_NAMED = {
    torch.dtype, torch.device, torch.layout, torch.memory_format, type(Ellipsis), range, slice,
    dt.datetime, dt.date, dt.time, dt.timedelta, dt.timezone,
    decimal.Decimal, fractions.Fraction, uuid.UUID,
}  # fmt: skip
"""Types whose `repr` says all there is to a value."""


def _tensor(tensor: torch.Tensor) -> bytes:
    with torch._C.DisableTorchFunctionSubclass():
        head = f"{tensor.dtype}|{tuple(tensor.shape)}|"
        if tensor.is_meta:
            return _frame("tensor", f"{head}meta".encode())
        if tensor.layout is torch.strided and not tensor.is_quantized:
            return _frame("tensor", head.encode() + hash_bytes(flat_bytes(tensor)))
        if tensor.layout is torch.sparse_coo:
            parts = [tensor._indices(), tensor._values()]
        elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
            parts = [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
        elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
            parts = [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
        elif tensor.is_quantized:
            parts = [tensor.int_repr(), tensor.dequantize()]
        else:
            raise TypeError(f"no canonical encoding of a tensor of layout {tensor.layout}")
        return _frame("tensor", f"{head}{tensor.layout}|".encode() + b"".join(map(_tensor, parts)))


def _array(array: np.ndarray[Any, Any]) -> Iterator[bytes | _Inner]:
    yield _frame("array", f"{_type_name(array).decode()}|{array.dtype.str}|{array.dtype.descr}|{array.shape}|".encode())
    if array.dtype.hasobject:
        yield from (_Inner(item) for item in array.ravel().tolist())
    else:
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        yield hash_bytes(torch.from_numpy(flat if flat.flags.writeable else flat.copy()))  # torch warns of the others


def _container(value: Any, unknown: Unknown | None) -> Iterator[bytes | _Inner]:
    kind = type(value)
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, dict) and kind.__module__ != "__main__":
        return _mapping(value, unknown)
    if kind in (list, tuple, deque, torch.Size) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return _sequence(value)
    if kind in (set, frozenset):
        return _unordered(kind.__name__, (b"".join(encode(item, unknown)) for item in value))
    if unknown is None:
        raise TypeError(f"no canonical encoding of type {kind.__module__}.{kind.__qualname__}")
    return iter((_frame("object", unknown(value)),))


def _sequence(value: Any) -> Iterator[bytes | _Inner]:
    bound = f"|{value.maxlen}" if isinstance(value, deque) else ""
    yield _frame("sequence", _type_name(value) + bound.encode()) + struct.pack("<Q", len(value))
    numbers = _numbers(value)
    if numbers is not None:
        yield _frame("numbers", str(numbers.dtype).encode()) + hash_bytes(torch.from_numpy(numbers.view(np.uint8)))
    else:
        for item in value:
            yield _Inner(item)


def _numbers(value: Any) -> np.ndarray[Any, Any] | None:
    """The items of a long sequence of plain integers, or of plain floats, as one array; None of any other."""
    kinds = set(map(type, value)) if len(value) >= MANY_ITEMS else set()
    if kinds not in ({int}, {float}):
        return None
    try:
        return np.array(value, dtype=np.int64 if kinds == {int} else np.float64)
    except OverflowError:
        return None


def _mapping(value: dict[Any, Any], unknown: Unknown | None) -> Iterator[bytes | _Inner]:
    yield _frame("mapping", _type_name(value)) + struct.pack("<Q", len(value))
    keyed = sorted(((b"".join(encode(key, unknown)), item) for key, item in value.items()), key=lambda pair: pair[0])
    for key, item in keyed:
        yield _frame("key", key)
        yield _Inner(item)


def _unordered(tag: str, items: Iterable[bytes]) -> Iterator[bytes | _Inner]:
    encoded = sorted(items)
    yield _frame(tag, struct.pack("<Q", len(encoded)))
    for item in encoded:
        yield _frame("item", item)


__all__ = ["OrderedDict", "digest", "encode", "flat_bytes", "hash_bytes"]
