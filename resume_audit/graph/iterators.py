"""Builtin iterators: what they would be copied from, and how they are moved."""

from __future__ import annotations

import builtins
import gc
import itertools
import types
from collections import deque
from typing import Any

from resume_audit import encoding
from resume_audit.graph.leaves import all_plain, is_plain, type_name
from resume_audit.graph.nodes import Label
from resume_audit.graph.opened import Held, Opened, attributes, instance_parts
from resume_audit.graph.paths import shorten
from resume_audit.graph.types import is_a


class _Rows:
    def __getitem__(self, _: int) -> None: ...


ITERATORS: tuple[type, ...] = (
    type(iter([])), type(iter(())), type(iter(range(0))), type(iter(range(1 << 70))), type(iter("")), type(iter(b"")),
    type(reversed([])), enumerate, zip, map, filter, itertools.count, itertools.chain, itertools.islice,
    itertools.cycle, itertools.repeat, itertools.product, itertools.permutations, itertools.combinations,
    itertools.accumulate, itertools.starmap, itertools.takewhile, itertools.dropwhile, itertools.zip_longest,
    itertools.compress, itertools.groupby, type(iter({})), type(iter({}.items())), type(iter({}.values())),
    type(iter(set())), type(iter(deque())), type(iter(_Rows())), type(iter(int, 1)),
)  # fmt: skip
"""Those that the interpreter copies."""


TEE: type = type(itertools.tee(())[0])
"""Iterators that read one source and share what has been read ahead of the slowest of them."""

READ_AHEAD: type = itertools._tee_dataobject  # type: ignore[attr-defined]
"""A stretch of what they have read."""


def is_iterator(kind: type) -> bool:
    """Whether instances are iterators made in C, whichever."""
    spaces = (type.__getattribute__(base, "__dict__") for base in kind.__mro__)
    return any(type(space.get("__next__")) is types.WrapperDescriptorType for space in spaces)


def reduce_iterator(obj: Any) -> tuple[Any, ...]:
    """What a builtin iterator would be copied from: how it is built, of what, and its state where it has one."""
    kind: Any = type(obj)
    reduced: tuple[Any, ...] = kind.__reduce__(obj)
    return reduced


def open_iterator(obj: Any) -> Opened:
    """A builtin iterator, by what it would be copied from."""
    kind = type(obj)
    try:
        reduced = reduce_iterator(obj)
    except TypeError:
        return open_closed_iterator(obj)
    arguments: tuple[Any, ...] = reduced[1] if len(reduced) > 1 else ()
    state = reduced[2] if len(reduced) > 2 else None
    if reduced[0] is iter and len(arguments) == 1 and type(arguments[0]) in (list, tuple, range, str, bytes):
        # What is left matters, not how it is spelled: a range that starts later is the same iterator.
        rest = list(itertools.islice(arguments[0], state if is_a(state, int) else 0, None))
        if all_plain(iter(rest)):
            return Opened("iterator", [], ("rest", encoding.digest(rest)), shorten(f"{len(rest)} left: {rest[:12]!r}"))
    place = "abreast" if kind in (zip, itertools.zip_longest) else "iterable"  # of several, each has a path of its own
    held = [(Label(place, i), item) for i, item in enumerate(arguments)]
    if state is not None:
        held.append((Label("iterable", "state"), state))
    started = None if state is None else len(state) if type(state) is tuple else 1
    made_of = ("built", getattr(reduced[0], "__qualname__", ""), len(arguments), started)
    return Opened("iterator", held, made_of, _where(kind, state))


def _where(kind: type, state: Any) -> str:
    """Where an iterator stands, in a few words."""
    if kind is itertools.chain:
        return "between two of its iterables" if state is None or len(state) == 1 else "inside one of its iterables"
    if state is None:
        return f"{kind.__name__} at its beginning"
    return f"{kind.__name__} at {state!r}" if is_plain(state) else f"{kind.__name__} that has begun"


def open_tee(obj: Any) -> Opened:
    _, _, (read_ahead, position) = reduce_iterator(obj)
    return Opened("tee", [(Label("read_ahead"), read_ahead), (Label("position"), position)])


def move_tee(live: Any, kind: str, value: Any) -> None:
    """Let an iterator made by `tee` stand in another stretch of what is read ahead, or elsewhere in its own."""
    _, _, (read_ahead, position) = reduce_iterator(live)
    move(live, (value, position) if kind == "read_ahead" else (read_ahead, value))


def open_read_ahead(obj: Any) -> Opened:
    _, (source, values, following) = reduce_iterator(obj)
    held: list[Held] = [(Label("iterable", 0), source), *((Label("index", i), item) for i, item in enumerate(values))]
    if following is not None:
        held.append((Label("following"), following))
    return Opened("read_ahead", held, (len(values), following is None), f"{len(values)} read ahead")


def with_source(live: Any, source: Any) -> Any:
    """The same stretch, to be continued from another source."""
    build, (_, values, following) = reduce_iterator(live)
    return build(source, values, following)


def open_closed_iterator(obj: Any) -> Opened:
    """An iterator that gives no way to be read and moved: what it holds is walked all the same."""
    own = instance_parts(obj)
    known = {id(attributes(obj)), *(id(item) for _, item in own)}
    kept = [
        item for item in gc.get_referents(obj) if id(item) not in known and not is_a(item, (type, types.ModuleType))
    ]
    held: list[Held] = [(Label("iterable", i), item) for i, item in enumerate(kept)]
    return Opened("closed", own + held, why=f"an iterator made in C, {type_name(type(obj))}")


def maker(name: str) -> Any:
    """What makes an iterator of its arguments, by name."""
    return getattr(itertools, name, None) or getattr(builtins, name)


def move(live: Any, state: Any) -> None:
    """Let an iterator stand elsewhere."""
    type(live).__setstate__(live, state)


def with_argument(live: Any, name: Any, value: Any) -> Any:
    """The iterator with another argument or state: itself, moved, where it allows that, else one built anew."""
    build, arguments, *state = reduce_iterator(live)
    if name == "state" and value is not None and hasattr(type(live), "__setstate__"):
        move(live, value)
        return live
    if name == "state":
        state = [value]
    else:
        arguments = tuple(value if i == name else item for i, item in enumerate(arguments))
    made = build(*arguments)
    if state and state[0] is not None:
        move(made, state[0])
    return made


def rest_of(live: Any) -> list[Any]:
    """The values that an iterator over a plain sequence has before it."""
    reduced = reduce_iterator(live)
    rest = reduced[1][0] if reduced[1] else ()
    at = reduced[2] if len(reduced) > 2 else 0
    return list(rest)[at:]


def with_rest(live: Any, rest: list[Any]) -> Any:
    """The iterator with just `rest` before it: itself, moved or its list refilled, else another one."""
    reduced = reduce_iterator(live)
    iterable = reduced[1][0] if reduced[1] else ()
    at = reduced[2] if len(reduced) > 2 else 0
    everything = list(iterable)
    start = len(everything) - len(rest)
    if start >= 0 and rest and encoding.digest(everything[start:]) == encoding.digest(rest) and len(reduced) > 2:
        move(live, start)
    elif type(iterable) is list and len(reduced) > 2:
        iterable[at:] = rest
    else:
        return iter(rest)
    return live
