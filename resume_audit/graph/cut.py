"""Cutting a patch out of the living first run."""

from __future__ import annotations

from typing import Any

import torch

from resume_audit.graph.containers import dict_of, elements
from resume_audit.graph.contents import copy_array, copy_tensor, generator_state, memory_bytes, seeds_state
from resume_audit.graph.difference import ABSENT, Difference, Suspect
from resume_audit.graph.iterators import rest_of
from resume_audit.graph.nodes import Label, Leaf, Node, Part
from resume_audit.graph.opened import attributes
from resume_audit.graph.patch import Change, Known, Named, New, OutOfReachError, Patch, Plain, Recipe, Value
from resume_audit.graph.walk import Walk

SEQUENCES = frozenset({"list", "deque", "tuple", "queue"})
SETS = frozenset({"set", "frozenset"})


class Cutter:
    """Makes a patch from the living first run."""

    def __init__(self, walk: Walk, found: Difference, theirs: list[Node]) -> None:
        self.walk, self.found, self.theirs = walk, found, theirs
        self.patch = Patch()
        self.leaders: dict[int, int] = {}
        for number in sorted(found.pairs):
            storage = walk.nodes[number].storage
            if storage is not None:
                self.leaders.setdefault(storage[0], number)

    def cut(self) -> Patch:
        for index, suspect in enumerate(self.found.suspects):
            known = set(self.patch.table)
            try:
                self.patch.changes.append(self.change(index, suspect))
            except OutOfReachError as reason:
                why = str(reason)
            except Exception as error:  # noqa: BLE001 -- an object that cannot be copied is told, and the others are cut
                why = f"copying it failed ({type(error).__name__}: {error})"
            else:
                continue
            self.patch.out_of_reach[index] = why
            for number in set(self.patch.table) - known:
                del self.patch.table[number]
        return self.patch

    def change(self, index: int, suspect: Suspect) -> Change:
        number, place = suspect.theirs, self.theirs[suspect.theirs].place
        node, live = self.walk.nodes[suspect.ours], self.walk.objects[suspect.ours]
        if suspect.kind == "content":
            return Change(index, "content", number, place, value=self.content(suspect.ours))
        if suspect.kind in ("part", "alias"):
            assert suspect.label is not None  # noqa: S101 -- such suspects have one
            if suspect.first == ABSENT:
                return Change(index, "delete", number, place, suspect.label)
            part = next(p for p in node.parts if p.label == suspect.label)
            label, key = self.label(part.label)
            return Change(index, "set", number, place, label, (key, self.value(part)))
        if suspect.kind == "storage":
            return Change(
                index, "storage", number, place, value=self.placed(suspect.ours, separate=suspect.shared == "separate")
            )
        if suspect.kind == "order":
            if node.kind == "module":
                own = attributes(live)
                order = {name: list(own.get(name) or ()) for name in ("_parameters", "_buffers", "_modules")}
                return Change(index, "order", number, place, value=order)
            if node.kind == "dict" and all(part.label.node is None for part in node.parts):
                return Change(index, "order", number, place, value=list(dict_of(live).keys(live)))
            raise OutOfReachError("the order of a set cannot be set")
        raise OutOfReachError(f"in the uninterrupted run {suspect.first}, in the resumed one {suspect.second}")

    def content(self, number: int) -> Any:
        """What a node is to hold itself: plain data, its elements, or another object in its place."""
        node, live = self.walk.nodes[number], self.walk.objects[number]
        if node.kind in SEQUENCES and not _is_plain(node):
            if node.kind == "tuple":
                return "anew", self.build(number)
            items = [self.value(part) for part in node.parts if part.label.kind == "index"]
            return "parts", items, getattr(live, "maxlen", None) if node.kind == "deque" else None
        if node.kind == "read_ahead" or (node.kind == "iterator" and node.content[0] == "built"):
            return "anew", self.build(number)
        return self.payload(node, live)

    def label(self, label: Label) -> tuple[Label, Value | None]:
        """The label on the other side; for a key that is an object, that object too."""
        if label.node is None:
            return label, None
        if label.node in self.found.pairs:
            return Label(label.kind, label.name, self.found.pairs[label.node]), self.known(label.node)
        return Label(label.kind, label.name, -1), self.node(label.node)

    def value(self, part: Part) -> Value:
        if isinstance(part.target, Leaf):
            return self.leaf(part.target)
        return self.node(part.target)

    def leaf(self, leaf: Leaf) -> Value:
        if leaf.portable:
            return Plain(leaf.value)
        if leaf.value is not None:
            return Named("enum", leaf.value[1], leaf.value[2])
        if leaf.type == "type":
            return Named("type", leaf.shown)
        raise OutOfReachError(f"{leaf.shown} ({leaf.type}) cannot be carried from one process to another")

    def known(self, number: int) -> Known:
        theirs = self.found.pairs[number]
        return Known(theirs, self.theirs[theirs].place)

    def node(self, number: int) -> Value:
        """The value of a node: known to the other side, or new."""
        return self.known(number) if number in self.found.pairs else self.build(number)

    def build(self, number: int) -> New:
        """A node anew, with all that hangs on it and is not known to the other side; without recursion."""
        waiting = [number]
        while waiting:
            current = waiting.pop()
            if current in self.patch.table:
                continue
            node = self.walk.nodes[current]
            recipe = Recipe(node.kind, node.type, self.new_payload(current))
            self.patch.table[current] = recipe
            for part in node.parts:
                if part.label.kind in ("index", "element") and _is_plain(node):
                    continue
                if part.label.kind == "grad_fn":  # mostly the value is what counts
                    self.patch.detached.append(node.path)
                    continue
                if isinstance(part.target, int) and part.target not in self.found.pairs:
                    waiting.append(part.target)
                    value: Value = New(part.target)
                else:
                    value = self.value(part)
                label = part.label
                key: Value | None = None
                if label.node is not None:
                    if label.node in self.found.pairs:
                        key = self.known(label.node)
                    else:
                        waiting.append(label.node)
                        key = New(label.node)
                recipe.parts.append((label, key, value))
        return New(number)

    def new_payload(self, number: int) -> Any:
        """What a new object is made of apart from its parts."""
        node, live = self.walk.nodes[number], self.walk.objects[number]
        if node.kind == "tensor":
            return self.placed(number, separate=False)
        if node.kind == "array" and live.dtype.hasobject:
            raise OutOfReachError(f"{node.path} is an array of objects, which cannot be built anew")
        if node.kind == "bytes":
            return self.payload(node, live), getattr(live, "typecode", "")
        if node.kind in ("array", "rng", "seeds") or (node.kind in SEQUENCES | SETS and _is_plain(node)):
            return self.payload(node, live)
        if node.kind == "deque":
            return None, live.maxlen
        if node.kind == "iterator":
            return rest_of(live) if node.content[0] == "rest" else node.content[1]
        if node.kind == "namespace":
            return live.namespace["__name__"]
        if node.kind == "function" and not node.parts:
            return node.content
        if node.kind in _UNBUILDABLE:
            what = node.why or node.shown or f"a {node.kind}"
            raise OutOfReachError(f"{node.path} is {what}, which cannot be built anew")
        return None

    def payload(self, node: Node, live: Any) -> Any:
        """What a node holds itself, as plain data of its own."""
        if node.kind == "tensor":
            return copy_tensor(live), isinstance(live, torch.nn.Parameter)
        if node.kind == "array":
            if live.dtype.hasobject:
                raise OutOfReachError("an array of objects of another shape")
            return copy_array(live)
        if node.kind == "rng":
            return generator_state(live)
        if node.kind == "seeds":
            return seeds_state(live)
        if node.kind == "deque":
            return elements(live), live.maxlen
        if node.kind in SEQUENCES | SETS:
            return elements(live)
        if node.kind == "dict":
            return {key: dict.__getitem__(live, key) for key in dict_of(live).keys(live)}
        if node.kind == "bytes" and not isinstance(live, torch.UntypedStorage):
            return memory_bytes(live)
        if node.kind == "iterator":
            return rest_of(live)
        if node.kind == "function":
            raise OutOfReachError(f"another function, {node.shown}")
        raise OutOfReachError(f"what {node.type} holds itself cannot be set")

    def placed(self, number: int, *, separate: bool) -> Any:
        """A tensor as a place in the storage of another one where it shares it, else with values of its own."""
        node, live = self.walk.nodes[number], self.walk.objects[number]
        leader = None if separate or node.storage is None else self.leaders.get(node.storage[0])
        if leader is not None and leader != number and node.storage is not None:
            _, offset, stride = node.storage
            return (
                "view",
                self.known(leader),
                (tuple(live.shape), stride, offset, str(live.dtype)),
                self.payload(node, live),
            )
        return "own", *self.payload(node, live)


_UNBUILDABLE = frozenset({"closed", "generator", "function", "class", "view", "skipped", "variable", "thread_local"})


def _is_plain(node: Node) -> bool:
    return isinstance(node.content, str) or (
        isinstance(node.content, tuple) and bool(node.content) and node.content[0] == "plain"
    )
