"""Setting a patch into the living second run."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import threading
import types
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from resume_audit.graph import frames
from resume_audit.graph.build import Builder, set_attribute, set_seed_sequence
from resume_audit.graph.containers import again, dict_of, elements, refill, reorder
from resume_audit.graph.contents import as_array_of, set_array, set_generator_state, set_memory, set_seeds, set_tensor
from resume_audit.graph.iterators import move_tee, reduce_iterator, with_argument, with_rest, with_source
from resume_audit.graph.nodes import Label
from resume_audit.graph.opened import attributes
from resume_audit.graph.patch import Change, OutOfReachError, Patch
from resume_audit.graph.settings import SETTINGS
from resume_audit.graph.walk import Walk, path_of


class Setter:
    """Applies changes of a patch to the living second run."""

    def __init__(self, walk: Walk, patch: Patch) -> None:
        self.walk, self.builder = walk, Builder(walk, patch)
        self.refused: dict[int, str] = {}

    def apply(self, changes: Iterable[Change]) -> dict[int, str]:
        """Apply changes: contents and parts first, then aliasing and order, which build on them.

        What cannot be set is left as it is: the reasons come back, by the number of the suspect.
        """
        ranks = {"content": 0, "set": 1, "delete": 1, "storage": 2, "order": 3}
        with torch.no_grad():
            for change in sorted(changes, key=lambda item: ranks[item.action]):
                try:
                    self.change(change)
                except OutOfReachError as reason:
                    self.refused[change.suspect] = str(reason)
                except Exception as error:  # noqa: BLE001 -- what one object does not allow must not hinder the others
                    self.refused[change.suspect] = f"setting it failed ({type(error).__name__}: {error})"
        return self.refused

    def change(self, change: Change) -> None:
        number = self.builder.number(change.number, change.place)
        if change.action == "content":
            self.set_content(number, change.value)
        elif change.action == "set":
            assert change.label is not None  # noqa: S101 -- such changes have one
            key, value = change.value
            self.set_part(
                number, change.label, self.builder.make(value), None if key is None else self.builder.make(key)
            )
        elif change.action == "delete":
            assert change.label is not None  # noqa: S101 -- such changes have one
            self.delete_part(number, change.label)
        elif change.action == "storage":
            self.walk.objects[number].data = self.builder.tensor(change.value)
        else:
            self.set_order(number, change.value)

    # --------------------------------------------------------------------------------------------------- contents

    def set_content(self, number: int, payload: Any) -> None:
        node, live = self.walk.nodes[number], self.walk.objects[number]
        if isinstance(payload, tuple) and payload and payload[0] == "parts":
            refill(live, [self.builder.make(value) for value in payload[1]], payload[2])
        elif isinstance(payload, tuple) and payload and payload[0] == "anew":
            self.replace(number, self.builder.make(payload[1]))
        elif node.kind == "tensor":
            if not set_tensor(live, payload[0]):
                self.replace(number, payload[0].clone())
        elif node.kind == "array":
            if not set_array(live, payload):
                self.replace(number, as_array_of(type(live), payload))
        elif node.kind == "rng":
            set_generator_state(live, payload)
        elif node.kind == "seeds":
            if not set_seeds(live, payload):
                self.replace(number, np.random.SeedSequence(**payload))
        elif node.kind == "iterator":
            moved = with_rest(live, payload) if node.content[0] == "rest" else iter(payload)
            if moved is not live:
                self.replace(number, moved)
        elif node.kind == "dict":
            dict_of(live).clear(live)
            dict_of(live).update(live, payload)
        elif node.kind == "bytes":
            if not set_memory(live, payload):
                raise OutOfReachError("memory of another size")
        else:
            items, bound = payload if node.kind == "deque" else (payload, None)
            if not refill(live, items, bound):
                self.replace(number, again(live, items))

    def replace(self, number: int, value: Any) -> None:
        """Put another object in every place where one is held."""
        node = self.walk.nodes[number]
        if node.holder is None:
            raise OutOfReachError(f"{node.path} has no holder")
        others = [
            (holder, part.label)
            for holder, other in enumerate(self.walk.nodes)
            for part in other.parts
            if part.target == number and (holder, part.label.sign) != (node.holder[0], node.holder[1].sign)
        ]
        self.set_part(*node.holder, value)
        for holder, label in others:
            with contextlib.suppress(OutOfReachError):  # a root, say, is only the walk's own way to it
                self.set_part(holder, label, value)
        self.walk.objects[number] = value

    # ------------------------------------------------------------------------------------------------------ parts

    def set_part(self, number: int, label: Label, value: Any, key: Any = None) -> None:
        live, node = self.walk.objects[number], self.walk.nodes[number]
        kind, name = label.kind, label.name
        if kind in ("attr", "slot"):
            set_attribute(live, name, value)
        elif kind == "member":
            attributes(live)[name[0]][name[1]] = value
        elif kind == "key":
            dict_of(live).__setitem__(live, self.key(label, key), value)
        elif kind == "index":
            self.set_element(number, live, name, value)
        elif kind == "global":
            live.namespace[name] = value
        elif kind == "namespace":
            return  # importing the module has put it where it belongs
        elif kind == "contents":
            live.cell_contents = value
        elif kind == "current":
            contextvars.ContextVar.set(live, value)
        elif kind == "thread_local":
            threading.local.__getattribute__(live, "__dict__")[name] = value
        elif kind == "local":
            frames.set_variable(live, name, value)
        elif kind == "setting":
            SETTINGS[name][1](value)
        elif kind in ("iterable", "abreast") and node.kind == "iterator":
            moved = with_argument(live, name, value)
            if moved is not live:
                self.replace(number, moved)
        elif kind in ("read_ahead", "position"):
            move_tee(live, kind, value)
        elif kind == "iterable" and node.kind == "read_ahead":
            self.replace(number, with_source(live, value))
        elif kind == "stack":
            if not frames.replace_on_stack(live, self.walk.objects[self.found_at(number, label)], value):
                raise OutOfReachError(f"{node.path} gives no way to set what its loop runs over")
        elif kind == "flag":
            live.requires_grad_(value)
        elif kind == "grad":
            live.grad = value
        elif kind == "seeds":
            set_seed_sequence(live, value)
        elif not set_default(live, kind, name, value):
            raise OutOfReachError(f"there is no way to set the {kind} {path_of(self.walk.nodes, number, label)}")

    def set_element(self, number: int, live: Any, name: int, value: Any) -> None:
        if isinstance(live, list):
            list.__setitem__(live, name, value)
        elif isinstance(live, deque):
            deque.__setitem__(live, name, value)
        elif isinstance(live, np.ndarray):
            np.ndarray.view(live, np.ndarray).flat[name] = value
        else:
            items = elements(live)
            items[name] = value
            if not refill(live, items):
                self.replace(number, again(live, items))

    def key(self, label: Label, key: Any) -> Any:
        """The key of a dict's entry: plain, an object, or the `id` of one."""
        if label.node is None:
            return label.name
        place = key if key is not None else self.walk.objects[label.node]
        return id(place) if label.name == "id" else place

    def found_at(self, number: int, label: Label) -> int:
        """The number of the node that a holder holds at a place."""
        for part in self.walk.nodes[number].parts:
            if part.label.sign == label.sign and isinstance(part.target, int):
                return part.target
        raise OutOfReachError(f"{self.walk.nodes[number].path} is not as it was")

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
            dict_of(live).pop(live, self.key(label, None), None)
        elif kind == "global":
            live.namespace.pop(name, None)
        elif kind == "thread_local":
            threading.local.__getattribute__(live, "__dict__").pop(name, None)
        elif kind == "iterable" and name == "state":
            build, arguments, *_ = reduce_iterator(live)
            self.replace(number, build(*arguments))
        elif kind == "grad":
            live.grad = None
        else:
            raise OutOfReachError(f"there is no way to take away the {kind} {path_of(self.walk.nodes, number, label)}")

    def set_order(self, number: int, order: Any) -> None:
        live = self.walk.objects[number]
        if isinstance(live, torch.nn.Module):
            for registry, names in order.items():
                reorder(attributes(live)[registry], names)
        else:
            reorder(live, order)


def set_default(live: Any, kind: str, name: str, value: Any) -> bool:
    """Set what a function or a dict falls back on. Whether `kind` is such a thing."""
    if kind == "default":
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
        return False
    return True
