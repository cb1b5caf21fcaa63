"""Values cut out of one run and set into another: the transplant.

A patch is made where the first run is alive, from its walk and the difference to the second run's snapshot;
it is plain data. It is applied in a process in which the second run stands where that snapshot was taken: its
walk numbers the nodes alike.
"""

from __future__ import annotations

import functools
import importlib
import random
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from resume_audit import encoding
from resume_audit.graph import frames
from resume_audit.graph.difference import ABSENT, Difference, Suspect
from resume_audit.graph.leaves import items_of
from resume_audit.graph.nodes import Label, Leaf, Node, Part
from resume_audit.graph.parts import attributes, reduce_iterator
from resume_audit.graph.settings import SETTINGS
from resume_audit.graph.walk import Walk, path_of


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


# ---------------------------------------------------------------------------------------------------- cutting out


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
                self.patch.out_of_reach[index] = str(reason)
                for number in set(self.patch.table) - known:
                    del self.patch.table[number]
        return self.patch

    def change(self, index: int, suspect: Suspect) -> Change:
        number, place = suspect.theirs, self.theirs[suspect.theirs].place
        node, live = self.walk.nodes[suspect.ours], self.walk.objects[suspect.ours]
        if suspect.kind == "content":
            if node.kind == "tuple" and node.content[0] != "plain":
                raise OutOfReachError("a tuple of another length")
            if node.kind in ("list", "deque") and node.content[0] != "plain":
                return Change(
                    index, "content", number, place, value=("parts", [self.value(part) for part in node.parts])
                )
            return Change(index, "content", number, place, value=self.payload(node, live))
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
                return Change(index, "order", number, place, value=list(dict.keys(live)))
            raise OutOfReachError("the order of a set cannot be set")
        raise OutOfReachError(f"in the uninterrupted run {suspect.first}, in the resumed one {suspect.second}")

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
        """The value of a node: known to the other side, or new with all that hangs on it; without recursion."""
        if number in self.found.pairs:
            return self.known(number)
        waiting = [number]
        while waiting:
            current = waiting.pop()
            if current in self.patch.table:
                continue
            node = self.walk.nodes[current]
            recipe = Recipe(node.kind, node.type, self.new_payload(current))
            self.patch.table[current] = recipe
            for part in node.parts:
                if node.kind in ("list", "deque", "set", "frozenset", "tuple") and _is_plain(node):
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
        node, live = self.walk.nodes[number], self.walk.objects[number]
        if node.kind == "tensor":
            return self.placed(number, separate=False)
        if node.kind in ("array", "rng", "bytes") or (
            node.kind in ("list", "deque", "set", "frozenset", "tuple") and _is_plain(node)
        ):
            return self.payload(node, live)
        if node.kind == "deque":
            return live.maxlen
        if node.kind == "iterator":
            return self.payload(node, live) if node.content else None
        if node.kind == "function" and not node.parts:
            return node.content
        if node.kind in ("closed", "generator", "function", "class", "view", "skipped", "global", "adapter"):
            what = node.why or node.shown or f"a {node.kind}"
            raise OutOfReachError(f"{node.path} is {what}, which cannot be built anew")
        return None

    def payload(self, node: Node, live: Any) -> Any:
        """What a node holds itself, as plain data of its own."""
        if node.kind == "tensor":
            return _copy(live), isinstance(live, torch.nn.Parameter)
        if node.kind == "array":
            if live.dtype.hasobject:
                raise OutOfReachError("an array of objects of another shape")
            return np.array(live, copy=True, subok=False)
        if node.kind == "rng":
            return generator_state(live)
        if node.kind in ("list", "deque", "set", "frozenset", "tuple"):
            return list(items_of(live))
        if node.kind == "dict":
            return dict(dict.items(live))
        if node.kind == "bytes" and isinstance(live, bytearray):
            return bytes(live)
        if node.kind == "iterator" and node.content and node.content[0] == "rest":
            reduced = reduce_iterator(live)
            rest = reduced[1][0] if reduced[1] else ()
            at = reduced[2] if len(reduced) > 2 else 0
            return list(rest)[at:]
        if node.kind == "iterator":
            raise OutOfReachError(f"{node.type} {node.shown} cannot be moved")
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


def _is_plain(node: Node) -> bool:
    return isinstance(node.content, str) or (
        isinstance(node.content, tuple) and bool(node.content) and node.content[0] == "plain"
    )


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        plain = tensor.detach().as_subclass(torch.Tensor)
        return plain.clone(memory_format=torch.preserve_format)


def generator_state(generator: Any) -> Any:
    if isinstance(generator, torch.Generator):
        return torch.Generator.get_state(generator)
    if isinstance(generator, np.random.BitGenerator):
        return generator.state
    if isinstance(generator, np.random.RandomState):
        return np.random.RandomState.get_state(generator, legacy=False)
    return random.Random.getstate(generator)


def set_generator_state(generator: Any, state: Any) -> None:
    if isinstance(generator, torch.Generator):
        torch.Generator.set_state(generator, state)
    elif isinstance(generator, np.random.BitGenerator):
        generator.state = state
    elif isinstance(generator, np.random.RandomState):
        np.random.RandomState.set_state(generator, state)
    else:
        random.Random.setstate(generator, state)


# ------------------------------------------------------------------------------------------------------ setting in


class Setter:
    """Applies changes of a patch to the living second run."""

    def __init__(self, walk: Walk, patch: Patch) -> None:
        self.walk, self.patch = walk, patch
        self.built: dict[int, Any] = {}
        self.places = {node.place: number for number, node in enumerate(walk.nodes)}
        self.types = {
            type_name: type(item) for type_name, item in zip((n.type for n in walk.nodes), walk.objects, strict=True)
        }

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply changes: contents and parts first, then aliasing and order, which build on them.

        Raises OutOfReachError where the run at hand is not the one that the patch was made for.
        """
        ranks = {"content": 0, "set": 1, "delete": 1, "storage": 2, "order": 3}
        with torch.no_grad():
            for change in sorted(changes, key=lambda item: ranks[item.action]):
                self.change(change)

    def change(self, change: Change) -> None:
        number = self.number(change.number, change.place)
        if change.action == "content":
            self.set_content(number, change.value)
        elif change.action == "set":
            assert change.label is not None  # noqa: S101 -- such changes have one
            key, value = change.value
            self.set_part(number, change.label, self.make(value), None if key is None else self.make(key))
        elif change.action == "delete":
            assert change.label is not None  # noqa: S101 -- such changes have one
            self.delete_part(number, change.label)
        elif change.action == "storage":
            tensor = self.tensor(change.value)
            self.walk.objects[number].data = tensor
        else:
            self.set_order(number, change.value)

    def number(self, number: int, place: bytes) -> int:
        """The number of a node: as it was, or where other cures have shifted the numbers, by its place."""
        if number < len(self.walk.nodes) and self.walk.nodes[number].place == place:
            return number
        if place not in self.places:
            raise OutOfReachError("what is to be set is not where it was")
        return self.places[place]

    def set_content(self, number: int, payload: Any) -> None:
        node, live = self.walk.nodes[number], self.walk.objects[number]
        if isinstance(payload, tuple) and payload and payload[0] == "parts":
            items = [self.make(value) for value in payload[1]]
            self.refill(number, items)
        elif node.kind == "tensor":
            self.set_tensor(number, live, payload[0])
        elif node.kind == "array":
            if live.shape == payload.shape and live.dtype == payload.dtype and live.flags.writeable:
                live[...] = payload
            else:
                self.replace(number, payload)
        elif node.kind == "rng":
            set_generator_state(live, payload)
        elif node.kind == "iterator":
            self.set_iterator(number, live, payload)
        elif node.kind == "dict":
            dict.clear(live)
            dict.update(live, payload)
        elif node.kind == "bytes":
            live[:] = payload
        else:
            self.refill(number, payload)

    def refill(self, number: int, items: list[Any]) -> None:
        """Give a sequence or a set other elements, in place where it allows that."""
        live = self.walk.objects[number]
        if isinstance(live, list):
            list.__setitem__(live, slice(None), items)
        elif isinstance(live, deque):
            deque.clear(live)
            deque.extend(live, items)
        elif isinstance(live, set):
            set.clear(live)
            set.update(live, items)
        elif isinstance(live, tuple):
            self.replace(number, tuple.__new__(type(live), items))
        else:
            self.replace(number, frozenset(items))

    def set_tensor(self, number: int, live: torch.Tensor, value: torch.Tensor) -> None:
        plain = live.detach()
        if plain.shape == value.shape and plain.dtype == value.dtype:
            live.data.copy_(value)
        else:
            try:
                live.data = value.clone()
            except (RuntimeError, TypeError):
                self.replace(number, value.clone())

    def set_iterator(self, number: int, live: Any, rest: list[Any]) -> None:
        """Let an iterator have just `rest` before it: moved, its list refilled, or replaced where it is held."""
        reduced = reduce_iterator(live)
        iterable = reduced[1][0] if reduced[1] else ()
        at = reduced[2] if len(reduced) > 2 else 0
        everything = list(iterable)
        start = len(everything) - len(rest)
        if start >= 0 and rest and encoding.digest(everything[start:]) == encoding.digest(rest) and len(reduced) > 2:
            type(live).__setstate__(live, start)
        elif type(iterable) is list and len(reduced) > 2:
            iterable[at:] = rest
        else:
            self.replace(number, iter(rest))

    def replace(self, number: int, value: Any) -> None:
        """Put another object in the place where a node was found."""
        holder = self.walk.nodes[number].holder
        if holder is None:
            raise OutOfReachError(f"{self.walk.nodes[number].path} has no holder")
        self.set_part(holder[0], holder[1], value)
        self.walk.objects[number] = value

    def set_part(self, number: int, label: Label, value: Any, key: Any = None) -> None:
        live, node = self.walk.objects[number], self.walk.nodes[number]
        kind, name = label.kind, label.name
        if kind in ("attr", "slot"):
            self.set_attribute(live, name, value)
        elif kind == "member":
            attributes(live)[name[0]][name[1]] = value
        elif kind == "key":
            place = key if key is not None else self.walk.objects[label.node] if label.node is not None else name
            place = id(place) if label.node is not None and name == "id" else place
            (OrderedDict if isinstance(live, OrderedDict) else dict).__setitem__(live, place, value)
        elif kind == "index" and isinstance(live, list):
            list.__setitem__(live, name, value)
        elif kind == "index" and isinstance(live, deque):
            deque.__setitem__(live, name, value)
        elif kind == "index" and isinstance(live, tuple):
            items = list(items_of(live))
            items[name] = value
            self.replace(number, tuple.__new__(type(live), items))
        elif kind == "index" and isinstance(live, np.ndarray):
            live.reshape(-1)[name] = value
        elif kind == "contents" and node.kind == "global":
            live.namespace[live.name] = value
        elif kind == "contents":
            live.cell_contents = value
        elif kind == "local":
            frames.set_variable(live, name, value)
        elif kind == "setting":
            SETTINGS[name][1](value)
        elif kind == "iterable":
            self.set_argument(number, live, name, value)
        elif kind == "stack":
            if not frames.replace_on_stack(live, self.walk.objects[self.found_at(number, label)], value):
                raise OutOfReachError(f"{node.path} gives no way to set what its loop runs over")
        elif kind == "flag":
            live.requires_grad_(value)
        elif kind == "grad":
            live.grad = value
        elif kind == "default":
            code, old = live.__code__, live.__defaults__
            names = code.co_varnames[code.co_argcount - len(old) : code.co_argcount]
            live.__defaults__ = tuple(value if other == name else item for other, item in zip(names, old, strict=True))
        elif kind == "kwdefault":
            live.__kwdefaults__[name] = value
        elif kind == "factory":
            live.default_factory = value
        elif kind == "keyword":
            functools.partial.keywords.__get__(live)[name] = value
        else:
            raise OutOfReachError(f"there is no way to set the {kind} {path_of(self.walk.nodes, number, label)}")

    def found_at(self, number: int, label: Label) -> int:
        """The number of the node that a holder holds at a place."""
        for part in self.walk.nodes[number].parts:
            if part.label.sign == label.sign and isinstance(part.target, int):
                return part.target
        raise OutOfReachError(f"{self.walk.nodes[number].path} is not as it was")

    def set_argument(self, number: int, live: Any, name: Any, value: Any) -> None:
        """Give an iterator another argument or state: moved where it allows that, else rebuilt where it is held."""
        build, arguments, *state = reduce_iterator(live)
        if name == "state" and hasattr(type(live), "__setstate__") and build is iter:
            type(live).__setstate__(live, value)
            return
        if name == "state":
            state = [value]
        else:
            arguments = tuple(value if i == name else item for i, item in enumerate(arguments))
        made = build(*arguments)
        if state and state[0] is not None:
            type(made).__setstate__(made, state[0])
        self.replace(number, made)

    @staticmethod
    def set_attribute(live: Any, name: str, value: Any) -> None:
        if isinstance(live, type):
            type.__setattr__(live, name, value)
            return
        for base in type(live).__mro__:
            member = vars(base).get(name)
            if type(member) is types.MemberDescriptorType:
                member.__set__(live, value)
                return
        attributes(live)[name] = value

    def delete_part(self, number: int, label: Label) -> None:
        live = self.walk.objects[number]
        kind, name = label.kind, label.name
        if kind == "attr" and isinstance(live, type):
            type.__delattr__(live, name)
        elif kind == "attr":
            attributes(live).pop(name, None)
        elif kind == "slot":
            for base in type(live).__mro__:
                if type(vars(base).get(name)) is types.MemberDescriptorType:
                    vars(base)[name].__delete__(live)
        elif kind == "member":
            attributes(live)[name[0]].pop(name[1], None)
        elif kind == "key":
            place = self.walk.objects[label.node] if label.node is not None else name
            place = id(place) if label.node is not None and name == "id" else place
            (OrderedDict if isinstance(live, OrderedDict) else dict).pop(live, place, None)
        elif kind == "grad":
            live.grad = None
        else:
            raise OutOfReachError(f"there is no way to take away the {kind} {path_of(self.walk.nodes, number, label)}")

    def set_order(self, number: int, order: Any) -> None:
        live = self.walk.objects[number]
        if isinstance(live, torch.nn.Module):
            for registry, names in order.items():
                _reorder(attributes(live)[registry], names)
        else:
            _reorder(live, order)

    # -------------------------------------------------------------------------------------------------- building

    def make(self, value: Value) -> Any:
        if isinstance(value, Plain):
            return value.value
        if isinstance(value, Known):
            return self.walk.objects[self.number(value.number, value.place)]
        if isinstance(value, Named):
            found = self.find_type(value.name)
            return vars(found)["_member_map_"][value.member] if value.kind == "enum" else found
        self.build(value.number)
        return self.built[value.number]

    def build(self, number: int) -> None:
        """Build an object and all that hangs on it: first empty shells, then their parts; without recursion."""
        order: list[int] = []
        waiting = [number]
        seen: set[int] = set()
        while waiting:
            current = waiting.pop()
            if current in seen or current in self.built:
                continue
            seen.add(current)
            order.append(current)
            for _, key, part in self.patch.table[current].parts:
                waiting += [item.number for item in (key, part) if isinstance(item, New)]
        held_late = {"tuple", "frozenset", "method", "partial", "weakref", "iterator"}
        for current in order:
            if self.patch.table[current].kind not in held_late:
                self.built[current] = self.shell(self.patch.table[current])
        for current in reversed(order):
            if self.patch.table[current].kind in held_late:
                self.finish(current)
        for current in order:
            if self.patch.table[current].kind not in held_late:
                self.fill(current)

    def finish(self, number: int) -> None:
        """Build an object that takes its parts when it is made."""
        if number in self.built:
            return
        recipe = self.patch.table[number]
        for _, _, part in recipe.parts:
            if isinstance(part, New) and part.number not in self.built:
                self.finish(part.number)
        made = {label.sign: self.ready(part) for label, _, part in recipe.parts}
        if recipe.kind == "tuple":
            items = (
                recipe.payload if recipe.payload is not None else [made[sign] for sign in made if sign[0] == "index"]
            )
            self.built[number] = tuple.__new__(self.find_type(recipe.type), items)
        elif recipe.kind == "iterator":
            self.built[number] = self.iterator(recipe, made)
        elif recipe.kind == "frozenset":
            self.built[number] = frozenset(recipe.payload if recipe.payload is not None else made.values())
        elif recipe.kind == "method":
            by_kind = {sign[0]: item for sign, item in made.items()}
            if "func" not in by_kind:
                raise OutOfReachError("a bound method of a builtin object")
            self.built[number] = types.MethodType(by_kind["func"], by_kind["self"])
        elif recipe.kind == "partial":
            positional = [item for sign, item in made.items() if sign[0] == "argument"]
            named = {sign[2]: item for sign, item in made.items() if sign[0] == "keyword"}
            function = next(item for sign, item in made.items() if sign[0] == "func")
            self.built[number] = functools.partial(function, *positional, **named)
        else:
            target = next(iter(made.values()), None)
            self.built[number] = weakref.ref(target) if target is not None else (lambda: None)

    def iterator(self, recipe: Recipe, made: dict[Any, Any]) -> Any:
        if recipe.payload is not None:
            return iter(list(recipe.payload))
        arguments = [item for sign, item in made.items() if sign[2] != "state"]
        state = [item for sign, item in made.items() if sign[2] == "state"]
        kind = self.find_type(recipe.type)
        again = (
            kind(*arguments)
            if kind.__module__ == "itertools" or kind in (enumerate, zip, map, filter, reversed)
            else iter(*arguments)
        )
        if state:
            type(again).__setstate__(again, state[0])
        return again

    def ready(self, value: Value) -> Any:
        return self.built[value.number] if isinstance(value, New) else self.make(value)

    def shell(self, recipe: Recipe) -> Any:
        if recipe.kind == "tensor":
            made = self.tensor(recipe.payload)
            _, parameter = recipe.payload[1:] if recipe.payload[0] == "own" else recipe.payload[3]
            return torch.nn.Parameter(made, requires_grad=False) if parameter else made
        if recipe.kind == "array":
            return recipe.payload.copy()
        if recipe.kind == "bytes":
            return bytearray(recipe.payload)
        if recipe.kind == "cell":
            return types.CellType()
        if recipe.kind == "function":
            module, name = recipe.payload
            return self.find_type(f"{module}.{name}")
        kind = self.find_type(recipe.type)
        if recipe.kind == "rng":
            made = kind()
            set_generator_state(made, recipe.payload)
            return made
        if recipe.kind == "deque":
            bound = recipe.payload if isinstance(recipe.payload, int) else None
            return deque(maxlen=bound) if kind is deque else deque.__new__(kind)
        for base in (OrderedDict, dict, list, set):
            if issubclass(kind, base):
                return base.__new__(kind)
        try:
            return object.__new__(kind)
        except TypeError as error:
            raise OutOfReachError(f"a {recipe.type} cannot be built anew") from error

    def fill(self, number: int) -> None:
        recipe, live = self.patch.table[number], self.built[number]
        if recipe.kind in ("list", "deque", "set") and isinstance(recipe.payload, list):
            add: Any = {"list": list.extend, "deque": deque.extend, "set": set.update}[recipe.kind]
            add(live, recipe.payload)
        for label, key, part in recipe.parts:
            value = self.ready(part)
            if label.kind == "index" and isinstance(live, list):
                list.append(live, value)
            elif label.kind == "index" and isinstance(live, deque):
                deque.append(live, value)
            elif label.kind == "element":
                set.add(live, value)
            elif label.kind == "key":
                place = label.name if key is None else self.ready(key)
                place = id(place) if key is not None and label.name == "id" else place
                (OrderedDict if isinstance(live, OrderedDict) else dict).__setitem__(live, place, value)
            elif label.kind == "factory":
                live.default_factory = value
            elif label.kind == "contents":
                live.cell_contents = value
            elif label.kind == "member":
                attributes(live).setdefault(label.name[0], {})[label.name[1]] = value
            elif label.kind == "grad":
                live.grad = value
            elif label.kind == "flag":
                live.requires_grad_(value)
            elif label.kind in ("attr", "slot"):
                self.set_attribute(live, label.name, value)
            elif label.kind == "bit_generator":
                raise OutOfReachError("a NumPy generator cannot be built anew")
        if recipe.kind == "module":
            for registry in ("_parameters", "_buffers", "_modules"):
                attributes(live).setdefault(registry, {})

    def tensor(self, payload: Any) -> torch.Tensor:
        if payload[0] == "own":
            return payload[1].clone()  # type: ignore[no-any-return]
        _, leader, (shape, stride, offset, dtype), _ = payload
        lead = self.make(leader).detach()
        if str(lead.dtype) != dtype:
            lead = lead.view(getattr(torch, dtype.removeprefix("torch.")))
        return torch.as_strided(lead, shape, stride, offset)

    def find_type(self, name: str) -> Any:
        if name in self.types:
            return self.types[name]
        module, _, rest = name.rpartition(".")
        module = module or "builtins"
        attributes_: list[str] = [rest]
        while module:
            try:
                found: Any = importlib.import_module(module)
                for attribute in attributes_:
                    found = getattr(found, attribute)
            except (ImportError, AttributeError, ValueError):
                module, _, rest = module.rpartition(".")
                attributes_.insert(0, rest)
            else:
                return found
        raise OutOfReachError(f"{name} is not to be found from outside")


def _reorder(entries: dict[Any, Any], order: list[Any]) -> None:
    kept = dict(dict.items(entries))
    for key in order:
        if key in kept:
            value = kept.pop(key)
            del entries[key]
            entries[key] = value
