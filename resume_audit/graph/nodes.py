"""What a walk writes down: objects as nodes, what they hold as parts; plain data that outlives the process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Label:
    """The place of a part within its holder.

    kind: how the part is reached (`attr`, `key`, `index`, `cell`, `local`, ...). name: which one. node: the
    number of the key's node where the key of a dict is an object.
    """

    kind: str
    name: Any = ""
    node: int | None = None

    @property
    def sign(self) -> tuple[str, str, Any, int | None]:
        """What two labels must share to be one place: `1`, `1.0` and `True` are three keys."""
        return self.kind, type(self.name).__name__, self.name, self.node


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value without identity: a number, a string, a tuple of such, a type, a named function.

    content: the canonical encoding (or its digest). shown: one line. value: the value itself where it can be carried.
    """

    type: str
    content: bytes
    shown: str
    value: Any = None
    portable: bool = True


@dataclass(slots=True)
class Part:
    """What a holder holds at one place: the number of a node, or a leaf."""

    label: Label
    target: int | Leaf


@dataclass(slots=True)
class Node:
    """An object with an identity.

    kind: how it is opened and set. type: its class, qualified. bases: the classes that one is derived from. path: as a
    programmer would write it. place: a digest of the way to it, which no other node shares. content: the canonical
    form of what it holds itself, apart from its parts. order: the order of its keys or elements. shown: one line.
    storage: number of the storage that a tensor lies in, and where in it. why: the reason for which it was not
    entered. holder: the node and place where it was found first. names: the paths of attributes that a job has given
    a name of their own.
    """

    kind: str
    type: str
    path: str
    parts: list[Part] = field(default_factory=list)
    content: Any = None
    order: bytes | None = None
    shown: str = ""
    storage: tuple[int, int, tuple[int, ...]] | None = None
    why: str = ""
    holder: tuple[int, Label] | None = None
    place: bytes = b""
    names: dict[str, str] = field(default_factory=dict)
    bases: tuple[str, ...] = ()


@dataclass(slots=True)
class Snapshot:
    """All nodes of one walk; node 0 holds the roots."""

    nodes: list[Node]

    def part(self, number: int, label: Label) -> Part | None:
        sign = label.sign
        return next((part for part in self.nodes[number].parts if part.label.sign == sign), None)
