"""What differs between two snapshots of one job, and where."""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass, field

from resume_audit.graph.nodes import Label, Leaf, Node, Part, Snapshot
from resume_audit.graph.walk import path_of

ABSENT = "absent"
OBJECTS = frozenset({"object", "module", "iterator"})
"""Kinds of nodes whose class says what they are for, as that of a list or of a cell does not."""


@dataclass(frozen=True)
class Suspect:
    """One piece of state that differs.

    kind: `content` (of the node `ours`/`theirs` itself), `part` (what a holder holds at `label`; absent on
    one side or of another kind), `alias` (two places hold one object on one side only), `storage` (two
    tensors lie in one storage on one side only), `order` (of keys or elements), `closed` (cannot be set).
    ours, theirs: numbers of the nodes concerned, on the first and on the second side. path, first, second:
    what a reader sees. with_: the other places of an aliasing. holder: the class of the nearest object around it that
    is no container of Python's own, and its bases.
    """

    kind: str
    path: str
    ours: int
    theirs: int
    first: str
    second: str
    label: Label | None = None
    sort: str = ""
    with_: tuple[str, ...] = ()
    shared: str = ""
    holder: tuple[str, ...] = ()


@dataclass
class Difference:
    """All suspects, the pairs of nodes that correspond, and what could not be entered on either side."""

    suspects: list[Suspect] = field(default_factory=list)
    pairs: dict[int, int] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)


def difference(ours: Snapshot, theirs: Snapshot) -> Difference:
    """Compare two snapshots pair by pair, from the roots on."""
    return _Comparison(ours, theirs).run()


class _Comparison:
    def __init__(self, ours: Snapshot, theirs: Snapshot) -> None:
        self.ours, self.theirs = ours.nodes, theirs.nodes
        self.found = Difference()
        self.pairs = self.found.pairs
        self.back: dict[int, int] = {}
        self.waiting: deque[tuple[int, int]] = deque()

    def run(self) -> Difference:
        self.pair(0, 0)
        while self.waiting:
            self.compare(*self.waiting.popleft())
        self.compare_storages()
        return self.found

    def pair(self, one: int, two: int) -> None:
        self.pairs[one], self.back[two] = two, one
        self.waiting.append((one, two))

    def suspect(self, kind: str, path: str, one: int, two: int, first: str, second: str, **more: object) -> None:
        if first == second and kind == "content":
            first, second = (
                f"{text} (digest {_mark(node.content)})"
                for text, node in ((first, self.ours[one]), (second, self.theirs[two]))
            )
        holder = self.holder(self.ours[one], itself=kind == "part")
        self.found.suspects.append(Suspect(kind, path, one, two, first, second, holder=holder, **more))  # type: ignore[arg-type]

    def holder(self, node: Node, *, itself: bool) -> tuple[str, ...]:
        """The classes of the object that a node belongs to: of the node itself, or of what holds it."""
        while node.holder is not None:
            if itself and node.kind in OBJECTS:
                return (node.type, *node.bases)
            node, itself = self.ours[node.holder[0]], True
        return ()

    def compare(self, one: int, two: int) -> None:
        ours, theirs = self.ours[one], self.theirs[two]
        for node in (ours, theirs):
            if node.kind == "closed":
                self.found.closed.setdefault(node.path, node.why)
        if ours.kind == "generator" and ours.content != theirs.content:
            self.suspect("position", theirs.path, one, two, ours.shown, theirs.shown, sort=ours.kind)
            if ours.content[1] != theirs.content[1]:
                return self.compare_alike(one, two, "cell")
        elif ours.content != theirs.content:
            self.suspect("content", ours.path, one, two, ours.shown, theirs.shown, sort=ours.kind)
            if ours.kind in ("list", "deque", "tuple", "queue") and len(ours.parts) != len(theirs.parts):
                return None
            if ours.kind == "iterator":
                return None  # built of other parts
            if ours.kind == "read_ahead":
                return self.compare_alike(one, two, "iterable")
        self.compare_parts(one, two)
        if ours.order != theirs.order and ours.kind != "closed":  # noqa: SIM102 -- the second question costs more
            if {part.label.sign for part in ours.parts} == {part.label.sign for part in theirs.parts}:
                self.suspect("order", ours.path, one, two, f"in the order {ours.shown}", f"in the order {theirs.shown}",
                             sort=ours.kind)  # fmt: skip
        return None

    def compare_alike(self, one: int, two: int, kind: str) -> None:
        """Compare parts of one kind alone.

        Of a suspended function and one that has not started only the shared cells correspond, of what has been read
        from a source only the source.
        """
        theirs = {part.label.sign: part for part in self.theirs[two].parts if part.label.kind == kind}
        for part in self.ours[one].parts:
            other = theirs.get(part.label.sign)
            if part.label.kind == kind and other is not None:
                self.compare_part(one, two, part, other)

    def compare_parts(self, one: int, two: int) -> None:
        theirs = {part.label.sign: part for part in self.theirs[two].parts}
        unmatched: list[Part] = []
        for part in self.ours[one].parts:
            label = part.label
            if label.node is not None and label.node in self.pairs:
                label = Label(label.kind, label.name, self.pairs[label.node])
            elif label.node is not None:
                unmatched.append(part)
                continue
            other = theirs.pop(label.sign, None)
            if other is None:
                self.absent(one, two, part, ours=True)
            else:
                self.compare_part(one, two, part, other)
        rest = [
            other for other in theirs.values() if other.label.node is not None and other.label.node not in self.back
        ]
        for part, other in zip(unmatched, rest, strict=False):  # keys that are new on both sides: by their order
            assert part.label.node is not None  # noqa: S101 -- chosen above
            assert other.label.node is not None  # noqa: S101 -- likewise
            if self.ours[part.label.node].type == self.theirs[other.label.node].type:
                self.pair(part.label.node, other.label.node)
            theirs.pop(other.label.sign)
            self.compare_part(one, two, part, other)
        for part in unmatched[len(rest) :]:
            self.absent(one, two, part, ours=True)
        for other in theirs.values():
            self.absent(one, two, other, ours=False)

    def absent(self, one: int, two: int, part: Part, *, ours: bool) -> None:
        if self.ours[one].kind == "generator" or part.label.kind == "root":
            return  # a variable that is not set yet, or a part of the job that only one run has named
        if self.ours[one].kind == "closed" and part.label.kind == "iterable":
            return  # the iterator itself is told
        if part.label.kind == "namespace" and not (self.ours if ours else self.theirs)[self.number(part)].parts:
            return  # a module that only one run has imported, and that has no data
        if ours:
            path = path_of(self.ours, one, part.label)
            self.suspect("part", path, one, two, self.show(part, self.ours), ABSENT, label=part.label)
        else:
            path = path_of(self.theirs, two, part.label)
            self.suspect("part", path, one, two, ABSENT, self.show(part, self.theirs), label=part.label, sort="extra")

    @staticmethod
    def number(part: Part) -> int:
        assert isinstance(part.target, int)  # noqa: S101 -- the caller knows that it is no leaf
        return part.target

    def compare_part(self, one: int, two: int, part: Part, other: Part) -> None:
        first, second = part.target, other.target
        path = path_of(self.ours, one, part.label)
        if isinstance(first, Leaf) and isinstance(second, Leaf):
            if (first.type, first.content) != (second.type, second.content):
                shown = self.apart(first, second)
                self.suspect("part", path, one, two, *shown, label=part.label, sort=first.type)
            return
        if isinstance(first, Leaf) or isinstance(second, Leaf):
            self.suspect("part", path, one, two, *self.apart(first, second), label=part.label)
            return
        if self.pairs.get(first) == second:
            return
        if first in self.pairs or second in self.back:
            self.alias(one, two, part, other, path)
            return
        ours, theirs = self.ours[first], self.theirs[second]
        if (ours.kind, ours.type) != (theirs.kind, theirs.type):
            self.suspect("part", path, one, two, *self.apart(first, second), label=part.label)
            return
        self.pair(first, second)

    def alias(self, one: int, two: int, part: Part, other: Part, path: str) -> None:
        """A place that holds an object known from elsewhere, on one side or on both, but not the same one."""
        assert isinstance(part.target, int)  # noqa: S101 -- the caller has looked
        assert isinstance(other.target, int)  # noqa: S101 -- likewise
        if part.target in self.pairs:
            known = self.ours[part.target].path
            first = f"the same object as {known}"
            second = (
                f"the same object as {self.ours[self.back[other.target]].path}" if other.target in self.back
                else "an object of its own"
            )  # fmt: skip
            shared = "shared"
        else:
            known = self.theirs[other.target].path
            first, second, shared = "an object of its own", f"the same object as {known}", "separate"
        self.suspect("alias", path, one, two, first, second, label=part.label, with_=(known,), shared=shared)

    def compare_storages(self) -> None:
        """Tensors that lie in one storage on one side and not on the other."""
        first_ours: dict[int, int] = {}
        first_theirs: dict[int, int] = {}
        for one, two in sorted(self.pairs.items()):
            mine, other = self.ours[one].storage, self.theirs[two].storage
            if mine is None or other is None:
                continue
            leader, their_leader = first_ours.setdefault(mine[0], one), first_theirs.setdefault(other[0], two)
            if self.pairs.get(leader) == their_leader:
                continue
            if leader != one:
                known, shared = self.ours[leader].path, "shared"
                first, second = f"shares the storage of {known}", "has a storage of its own"
            else:
                known, shared = self.ours[self.back[their_leader]].path, "separate"
                first, second = "has a storage of its own", f"shares the storage of {known}"
            path = self.ours[one].path
            self.suspect("storage", path, one, two, first, second, sort="tensor", with_=(known,), shared=shared)

    def apart(self, first: int | Leaf, second: int | Leaf) -> tuple[str, str]:
        """The texts of two values that differ: never the same one."""
        ours = first if isinstance(first, Leaf) else self.ours[first]
        theirs = second if isinstance(second, Leaf) else self.theirs[second]
        if isinstance(ours, Node) and isinstance(theirs, Node):  # of different classes: that is what differs
            texts = _with_type(ours), _with_type(theirs)
        else:
            texts = _text(ours), _text(theirs)
        if texts[0] != texts[1]:
            return texts
        if ours.type != theirs.type:
            return f"{texts[0]} ({ours.type})", f"{texts[1]} ({theirs.type})"
        return f"{texts[0]} (digest {_mark(ours.content)})", f"{texts[1]} (digest {_mark(theirs.content)})"

    @staticmethod
    def show(part: Part, nodes: list[Node]) -> str:
        return _text(part.target if isinstance(part.target, Leaf) else nodes[part.target])


def _text(value: Leaf | Node) -> str:
    return value.shown or f"a {_short(value)}"


def _short(value: Leaf | Node) -> str:
    return value.type.rpartition(".")[2]


def _with_type(node: Node) -> str:
    """The text of an object with the name of its class, where the text itself does not tell it."""
    told = not node.shown or node.shown.startswith(_short(node)) or node.type in ("list", "tuple")
    return _text(node) if told else f"{_short(node)} {node.shown}"


def _mark(content: object) -> str:
    """A few digits that tell contents apart."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:8]
