"""What opening an object gives, and the ways into an object that the interpreter itself has made."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from resume_audit.graph.nodes import Label

Held = tuple[Label, Any]


@dataclass
class Opened:
    """What was found in an object: see `Node`. keys: key objects that are no plain values, by position in `parts`."""

    kind: str
    parts: list[Held] = field(default_factory=list)
    content: Any = None
    shown: str = ""
    why: str = ""
    order: bytes | None = None
    keys: dict[int, Any] = field(default_factory=dict)


def attributes(obj: Any) -> dict[str, Any]:
    """The instance dict, through the interpreter's own descriptor; empty where there is none."""
    for base in type(obj).__mro__:
        own = type.__getattribute__(base, "__dict__").get("__dict__")
        if type(own) in (types.GetSetDescriptorType, types.MemberDescriptorType):
            found = own.__get__(obj)
            return found if type(found) is dict else {}
    return {}


def slots(obj: Any) -> Iterator[tuple[str, Any]]:
    """The slots that are filled."""
    for base in type(obj).__mro__:
        for name, member in _members(base):
            try:
                yield name, member.__get__(obj)
            except AttributeError:
                continue


def instance_parts(obj: Any, *, leave_out: frozenset[str] = frozenset()) -> list[Held]:
    held = [(Label("attr", name), value) for name, value in attributes(obj).items() if name not in leave_out]
    return held + [(Label("slot", name), value) for name, value in slots(obj)]


def hides_something(kind: type) -> bool:
    """Whether instances have room for more than attributes, slots and weak references: fields that C code has made."""
    word = object.__basicsize__ // 2
    managed_dict = 1 << 4  # it lies before the object
    for lower, upper in zip(kind.__mro__, kind.__mro__[1:], strict=False):
        base = lower.__base__ or upper
        room = lower.__basicsize__ - base.__basicsize__
        room -= word * sum(1 for _ in _members(lower))
        room -= word * (lower.__weakrefoffset__ > 0 and base.__weakrefoffset__ == 0)
        own_dict = lower.__dictoffset__ != 0 and base.__dictoffset__ == 0
        room -= word * (own_dict and not lower.__flags__ & managed_dict)
        if room > 0:
            return True
    return False


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    namespace = type.__getattribute__(kind, "__dict__")
    if "__slots__" in namespace:
        for name, member in namespace.items():
            if type(member) is types.MemberDescriptorType:
                yield name, member
