"""Values cut out of one run and set into another: the transplant.

A patch is made where the first run is alive, from its walk and the difference to the second run's snapshot;
it is plain data. It is applied in a process in which the second run stands where that snapshot was taken: its
walk numbers the nodes alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from resume_audit.graph.nodes import Label


class OutOfReachError(Exception):
    """A piece of state that Python gives no way to set, and why."""


@dataclass(frozen=True)
class Plain:
    """A value as it is."""

    value: Any


@dataclass(frozen=True)
class Named:
    """A class, a function or a member of an enumeration, by name."""

    kind: str
    name: str
    member: str = ""


@dataclass(frozen=True)
class Known:
    """An object that the second run has too: the number of its node, and its place."""

    number: int
    place: bytes


@dataclass(frozen=True)
class New:
    """An object that has to be built: its number in the table of the patch."""

    number: int


Value = Plain | Named | Known | New


@dataclass
class Recipe:
    """How to build an object: its kind and class, what it holds itself, and its parts."""

    kind: str
    type: str
    payload: Any = None
    parts: list[tuple[Label, Value | None, Value]] = field(default_factory=list)


@dataclass(frozen=True)
class Change:
    """One suspect's cure. action: `set` or `delete` a part, `content` of a node, `storage`, `order`."""

    suspect: int
    action: str
    number: int
    place: bytes
    label: Label | None = None
    value: Any = None


@dataclass
class Patch:
    """All cures that can be carried, the objects that they need built, and the suspects that are out of reach.

    detached: paths of tensors that are carried without the graph by which they were computed.
    """

    changes: list[Change] = field(default_factory=list)
    table: dict[int, Recipe] = field(default_factory=dict)
    out_of_reach: dict[int, str] = field(default_factory=dict)
    detached: list[str] = field(default_factory=list)
