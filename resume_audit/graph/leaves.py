"""Values without identity of their own."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import hashlib
import pathlib
import re
import types
import uuid
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from resume_audit import encoding
from resume_audit.graph.nodes import Leaf
from resume_audit.graph.paths import shorten
from resume_audit.graph.types import is_a

LONG = 64
"""Encodings above this many bytes are kept as digests."""

SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes})

_CARRIED = (
    torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, range, slice, type(Ellipsis),
    dt.datetime, dt.date, dt.time, dt.timedelta, dt.timezone,
    decimal.Decimal, fractions.Fraction, uuid.UUID,
)  # fmt: skip

_NAMED = (
    types.BuiltinFunctionType, types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType, types.ModuleType, types.CodeType, property, staticmethod,
    classmethod, type(NotImplemented), types.GenericAlias, types.UnionType, re.Pattern,
)  # fmt: skip


def type_name(kind: type) -> str:
    module = type.__getattribute__(kind, "__module__")
    name = type.__getattribute__(kind, "__qualname__")
    return name if module == "builtins" else f"{module}.{name}"


def base_names(kind: type) -> tuple[str, ...]:
    """The classes that a class is derived from, nearest first, without `object`."""
    return tuple(map(type_name, type.__getattribute__(kind, "__mro__")[1:-1]))


def is_plain(value: Any, depth: int = 4) -> bool:
    """Whether a value is a scalar or a tuple of such: it is equal to whatever has its encoding, and has no state."""
    kind = type(value)
    if kind in SCALARS:
        return True
    if kind in (tuple, torch.Size, frozenset) and depth:
        return all(is_plain(item, depth - 1) for item in kind.__iter__(value))
    return False


def all_plain(items: Iterator[Any]) -> bool:
    return all(is_plain(item) for item in items)


def leaf(value: Any) -> Leaf | None:
    """The leaf of a value that has no parts to be looked into; None for any other."""
    kind = type(value)
    if is_plain(value) or kind in _CARRIED or issubclass(kind, np.generic):
        return _encoded(value, kind)
    if issubclass(kind, pathlib.PurePath) and kind.__module__ in ("pathlib", "pathlib._local"):
        return _encoded(value, kind)
    if issubclass(kind, enum.Enum):
        name = object.__getattribute__(value, "_name_")
        shown = f"{kind.__qualname__}.{name}"
        return Leaf(type_name(kind), shown.encode(), shown, ("enum", type_name(kind), name), portable=False)
    if issubclass(kind, type):
        return Leaf("type", type_name(value).encode(), type_name(value), portable=False)
    if kind in _NAMED:
        return _named(value, kind)
    if kind.__module__.startswith("torch") and kind.__name__ in ("Tag", "finfo", "iinfo"):
        return Leaf(type_name(kind), repr(value).encode(), repr(value), portable=False)
    return None


def _encoded(value: Any, kind: type) -> Leaf:
    content = b"".join(encoding.encode(value))
    if len(content) > LONG:
        content = hashlib.sha256(content).digest()
    return Leaf(type_name(kind), content, shorten(repr(value)), value)


def _named(value: Any, kind: type) -> Leaf | None:
    if kind is types.BuiltinFunctionType:
        owner = value.__self__
        if owner is not None and not is_a(owner, (types.ModuleType, type)):
            return None  # a bound method of a builtin object: that object is a part
        shown = value.__qualname__
    elif kind is types.ModuleType:
        shown = types.ModuleType.__getattribute__(value, "__name__")
    elif kind is types.CodeType:
        shown = value.co_qualname
    elif kind is re.Pattern:
        shown = repr(value)
    else:
        shown = getattr(value, "__name__", kind.__name__) if kind.__module__ == "builtins" else kind.__name__
    return Leaf(type_name(kind), shorten(str(shown)).encode(), shorten(str(shown)), portable=False)


def items_of(value: Any) -> Iterator[Any]:
    """The elements of a builtin sequence or set, by the builtin's own iteration whatever a subclass says."""
    for base in (list, tuple, set, frozenset, deque):
        if issubclass(type(value), base):
            return base.__iter__(value)
    raise TypeError(type(value))
