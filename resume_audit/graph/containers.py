"""Builtin containers: opened by the builtin's own iteration, and given other elements in place."""

from __future__ import annotations

import gc
import hashlib
import queue
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Sized
from typing import Any

from resume_audit import encoding
from resume_audit.graph.leaves import all_plain, is_plain, items_of
from resume_audit.graph.nodes import Label
from resume_audit.graph.opened import Held, Opened, instance_parts
from resume_audit.graph.paths import shorten
from resume_audit.graph.types import is_a

LISTED = 512
"""Dicts of plain values with more entries than this are told as a whole."""


def dict_of(obj: dict[Any, Any]) -> type[dict[Any, Any]]:
    """The builtin class by whose methods a dict is read and written, whatever a subclass says.

    An OrderedDict keeps an order of its own, of which the methods of dict know nothing.
    """
    return OrderedDict if is_a(obj, OrderedDict) else dict


def open_dict(obj: dict[Any, Any]) -> Opened:
    keys = list(dict_of(obj).keys(obj))
    held: list[Held] = []
    objects: dict[int, Any] = {}
    order = hashlib.sha256()
    values = [dict.__getitem__(obj, key) for key in keys]
    if len(keys) > LISTED and all(map(is_plain, keys)) and all(map(is_plain, values)):
        content = encoding.digest(dict(zip(keys, values, strict=True)))
        return Opened("dict", instance_parts(obj), content, f"{len(keys)} entries")
    for key, value in zip(keys, values, strict=True):
        if is_plain(key):
            held.append((Label("key", key), value))
            order.update(repr(key).encode())
        else:
            objects[len(held)] = key
            held.append((Label("key"), value))
            order.update(b"?")
    if is_a(obj, defaultdict):
        held.append((Label("factory", "default_factory"), obj.default_factory))
    shown = shorten("{" + ", ".join(map(repr, keys[:8])) + ("…" if len(keys) > 8 else "") + "}") if not objects else ""
    return Opened(
        "dict", held + instance_parts(obj), order=order.digest(), keys=objects, shown=shown or f"{len(keys)} entries"
    )


def open_list(obj: list[Any]) -> Opened:
    return _sequence("list", list(items_of(obj)), obj)


def open_deque(obj: deque[Any]) -> Opened:
    opened = _sequence("deque", list(items_of(obj)), obj, obj.maxlen)
    bound = "" if obj.maxlen is None else f", maxlen={obj.maxlen}"
    opened.shown = f"deque({shorten(opened.shown, 80)}{bound})"
    return opened


def open_tuple(obj: tuple[Any, ...]) -> Opened:
    return _sequence("tuple", list(items_of(obj)), obj)


def open_queue(obj: queue.SimpleQueue[Any]) -> Opened:
    return _sequence("queue", waiting_in(obj), obj)


def _sequence(kind: str, items: list[Any], obj: Any, bound: int | None = None) -> Opened:
    held = instance_parts(obj) if kind != "tuple" or type(obj) is not tuple else []
    if all_plain(iter(items)):
        return Opened(kind, held, ("plain", bound, encoding.digest(items)), shorten(repr(type_of(kind)(items))))
    return Opened(kind, [(Label("index", i), item) for i, item in enumerate(items)] + held, (len(items), bound),
                  counted(items))  # fmt: skip


def type_of(kind: str) -> type:
    """As what the elements of a kind of sequence are shown."""
    return tuple if kind == "tuple" else list


def open_set(obj: Any) -> Opened:
    items = list(items_of(obj))
    kind = "set" if is_a(obj, set) else "frozenset"
    if all_plain(iter(items)):
        order = hashlib.sha256(repr(items).encode()).digest()
        shown = "{" + ", ".join(sorted(map(repr, items))) + "}"
        return Opened(kind, instance_parts(obj), encoding.digest(frozenset(items)), shorten(shown), order=order)
    return Opened(kind, [(Label("element", i), item) for i, item in enumerate(items)], len(items), counted(items))


def open_proxy(obj: types.MappingProxyType[Any, Any]) -> Opened:
    """A read-only view of a mapping: the interpreter tells what such a view refers to."""
    return Opened("proxy", [(Label("wrapped"), item) for item in gc.get_referents(obj)])


def open_view(obj: Any) -> Opened:
    return Opened("view", [], len(obj))


def counted(items: Sized) -> str:
    return "1 item" if len(items) == 1 else f"{len(items)} items"


def waiting_in(live: queue.SimpleQueue[Any]) -> list[Any]:
    """What waits in a queue made in C, first come first: the interpreter tells what the queue refers to."""
    held: list[Any] = [item for item in gc.get_referents(live) if item is not type(live)]
    if sys.version_info < (3, 13):
        (kept,) = held  # a list whose beginning has been taken
        held = kept[len(kept) - queue.SimpleQueue.qsize(live) :]
    if len(held) != queue.SimpleQueue.qsize(live):
        raise TypeError("a queue that does not tell what waits in it")
    return held


def elements(live: Any) -> list[Any]:
    """The elements of a sequence, a set or a queue."""
    return waiting_in(live) if is_a(live, queue.SimpleQueue) else list(items_of(live))


def refill(live: Any, items: list[Any], bound: int | None = None) -> bool:
    """Give a sequence, a set or a queue other elements, and a deque its bound. Whether it can be changed at all."""
    if isinstance(live, list):
        list.__setitem__(live, slice(None), items)
    elif isinstance(live, deque):
        deque.__init__(live, items, bound)
    elif isinstance(live, set):
        set.clear(live)
        set.update(live, items)
    elif isinstance(live, queue.SimpleQueue):
        while queue.SimpleQueue.qsize(live):
            queue.SimpleQueue.get_nowait(live)
        for item in items:
            queue.SimpleQueue.put(live, item)
    else:
        return False
    return True


def again(live: Any, items: list[Any]) -> Any:
    """A tuple or frozenset like `live` of other elements."""
    base: Any = tuple if isinstance(live, tuple) else frozenset
    return base.__new__(type(live), items)


def reorder(entries: dict[Any, Any], order: list[Any]) -> None:
    """Put the entries of a dict into another order."""
    kept = dict(dict.items(entries))
    for key in order:
        if key in kept:
            value = kept.pop(key)
            del entries[key]
            entries[key] = value
