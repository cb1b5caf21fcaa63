"""Objects built anew in the second run, from the recipes of a patch."""

from __future__ import annotations

import functools
import importlib
import itertools
import queue
import types
import weakref
from collections import OrderedDict, deque
from typing import Any

import numpy as np
import torch

from resume_audit.graph.containers import dict_of, refill
from resume_audit.graph.contents import as_array_of, memory_of, set_generator_state
from resume_audit.graph.iterators import READ_AHEAD, maker, move
from resume_audit.graph.opened import attributes
from resume_audit.graph.patch import Known, Named, New, OutOfReachError, Patch, Plain, Recipe, Value
from resume_audit.graph.walk import Namespace, Walk

HELD_LATE = frozenset(
    {"tuple", "frozenset", "method", "partial", "weakref", "iterator", "proxy", "numpy_generator", "tee", "read_ahead"}
)  # fmt: skip
"""Kinds that take their parts when they are made."""


class Builder:
    """Makes the values of a patch in the living second run."""

    def __init__(self, walk: Walk, patch: Patch) -> None:
        self.walk, self.patch = walk, patch
        self.built: dict[int, Any] = {}
        self.moves: list[tuple[Any, Any]] = []  # iterators are moved when what they run over is complete
        self.places = {node.place: number for number, node in enumerate(walk.nodes)}
        self.types = {
            type_name: type(item) for type_name, item in zip((n.type for n in walk.nodes), walk.objects, strict=True)
        }

    def number(self, number: int, place: bytes) -> int:
        """The number of a node: as it was, or where other cures have shifted the numbers, by its place."""
        if number < len(self.walk.nodes) and self.walk.nodes[number].place == place:
            return number
        if place not in self.places:
            raise OutOfReachError("what is to be set is not where it was")
        return self.places[place]

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
        for current in order:
            if self.patch.table[current].kind not in HELD_LATE:
                self.built[current] = self.shell(self.patch.table[current])
        for current in reversed(order):
            if self.patch.table[current].kind in HELD_LATE:
                self.finish(current)
        for current in order:
            if self.patch.table[current].kind not in HELD_LATE:
                self.fill(current)
        while self.moves:
            move(*self.moves.pop())

    def finish(self, number: int) -> None:
        """Build an object that takes its parts when it is made."""
        if number in self.built:
            return
        recipe = self.patch.table[number]
        for _, _, part in recipe.parts:
            if isinstance(part, New) and part.number not in self.built:
                self.finish(part.number)
        made = {label.sign: self.ready(part) for label, _, part in recipe.parts}
        by_kind = {sign[0]: item for sign, item in made.items()}
        only = next(iter(made.values()), None)
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
            if "func" not in by_kind:
                raise OutOfReachError("a bound method of a builtin object")
            self.built[number] = types.MethodType(by_kind["func"], by_kind["self"])
        elif recipe.kind == "partial":
            positional = [item for sign, item in made.items() if sign[0] == "argument"]
            named = {sign[2]: item for sign, item in made.items() if sign[0] == "keyword"}
            self.built[number] = functools.partial(by_kind["func"], *positional, **named)
        elif recipe.kind == "read_ahead":
            values = [item for sign, item in made.items() if sign[0] == "index"]
            self.built[number] = READ_AHEAD(by_kind["iterable"], values, by_kind.get("following"))
        elif recipe.kind == "tee":
            self.built[number] = itertools.tee(())[0]
            move(self.built[number], (by_kind["read_ahead"], by_kind["position"]))
        elif recipe.kind == "proxy":
            self.built[number] = types.MappingProxyType(only)  # type: ignore[arg-type]
        elif recipe.kind == "numpy_generator":
            self.built[number] = np.random.Generator(only)  # type: ignore[arg-type]
        else:
            self.built[number] = weakref.ref(only) if only is not None else (lambda: None)

    def iterator(self, recipe: Recipe, made: dict[Any, Any]) -> Any:
        if isinstance(recipe.payload, list):
            return iter(tuple(recipe.payload) if recipe.type == "tuple_iterator" else list(recipe.payload))
        built = maker(recipe.payload)(*(item for sign, item in made.items() if sign[2] != "state"))
        self.moves += [(built, item) for sign, item in made.items() if sign[2] == "state"]
        return built

    def ready(self, value: Value) -> Any:
        return self.built[value.number] if isinstance(value, New) else self.make(value)

    def shell(self, recipe: Recipe) -> Any:
        if recipe.kind == "tensor":
            made = self.tensor(recipe.payload)
            _, parameter = recipe.payload[1:] if recipe.payload[0] == "own" else recipe.payload[3]
            return torch.nn.Parameter(made, requires_grad=False) if parameter else made
        if recipe.kind == "cell":
            return types.CellType()
        if recipe.kind == "namespace":
            return Namespace(vars(importlib.import_module(recipe.payload)))
        if recipe.kind == "function":
            module, name = recipe.payload
            return self.find_type(f"{module}.{name}")
        kind = self.find_type(recipe.type)
        if recipe.kind == "array":
            return as_array_of(kind, recipe.payload)
        if recipe.kind == "bytes":
            return memory_of(kind, *recipe.payload)
        if recipe.kind == "seeds":
            return np.random.SeedSequence(**recipe.payload)
        if recipe.kind == "rng":
            made = kind()
            set_generator_state(made, recipe.payload)
            return made
        for base in (OrderedDict, dict, list, set, deque, queue.SimpleQueue):
            if issubclass(kind, base):
                return base.__new__(kind)
        try:
            return object.__new__(kind)
        except TypeError as error:
            raise OutOfReachError(f"a {recipe.type} cannot be built anew") from error

    def fill(self, number: int) -> None:
        recipe, live = self.patch.table[number], self.built[number]
        if recipe.kind in ("list", "set", "deque", "queue"):
            items, bound = recipe.payload if recipe.kind == "deque" else (recipe.payload, None)
            parts = [self.ready(part) for label, _, part in recipe.parts if label.kind in ("index", "element")]
            refill(live, parts if items is None else items, bound)
        for label, key, part in recipe.parts:
            if label.kind in ("index", "element"):
                continue
            value = self.ready(part)
            if label.kind == "key":
                place = label.name if key is None else self.ready(key)
                place = id(place) if key is not None and label.name == "id" else place
                dict_of(live).__setitem__(live, place, value)
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
                set_attribute(live, label.name, value)
            elif label.kind == "global":
                live.namespace[label.name] = value
            elif label.kind == "seeds":
                set_seed_sequence(live, value)
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


def set_attribute(live: Any, name: str, value: Any) -> None:
    """Set an attribute or a slot, through the interpreter's own descriptors."""
    if isinstance(live, type):
        type.__setattr__(live, name, value)
        return
    for base in type(live).__mro__:
        member: Any = vars(base).get(name)
        if type(member) in (types.MemberDescriptorType, types.GetSetDescriptorType):
            member.__set__(live, value)
            return
    attributes(live)[name] = value


def set_seed_sequence(live: Any, value: Any) -> None:
    """Let a bit generator spawn from another sequence of seeds."""
    base: Any = np.random.BitGenerator
    base.__setstate__(live, (live.state, value))
