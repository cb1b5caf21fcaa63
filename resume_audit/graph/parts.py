"""How each kind of object is opened: what it holds itself, and its parts.

Nothing here calls a method that a job has defined: attributes are read through the interpreter's own
descriptors, builtin containers by the builtin's own iteration, tensors and generators by torch's and NumPy's
functions.
"""

from __future__ import annotations

import array
import collections
import functools
import hashlib
import io
import itertools
import logging
import multiprocessing.process
import random
import socket
import threading
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Sized
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from resume_audit import encoding
from resume_audit.graph import frames
from resume_audit.graph.leaves import all_plain, is_plain, items_of
from resume_audit.graph.nodes import Label
from resume_audit.graph.paths import shorten
from resume_audit.graph.types import is_a

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


CachedFunction = type(functools.cache(lambda: None))
"""What `functools.cache` and `functools.lru_cache` make of a function."""

LISTED = 512
"""Dicts of plain values with more entries than this are told as a whole."""

_ITERATORS: tuple[type, ...] = (
    type(iter([])), type(iter(())), type(iter(range(0))), type(iter(range(1 << 70))), type(iter("")), type(iter(b"")),
    type(reversed([])), enumerate, zip, map, filter, itertools.count, itertools.chain, itertools.islice,
    itertools.cycle, itertools.repeat, itertools.product, itertools.permutations, itertools.combinations,
    itertools.accumulate, itertools.starmap, itertools.takewhile, itertools.dropwhile, itertools.zip_longest,
    itertools.compress, type(iter({})), type(iter({}.items())), type(iter({}.values())),
    type(iter(set())), type(iter(deque())),
)  # fmt: skip

_CLOSED: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (
        (type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Semaphore, threading.Event),
        "a lock",
    ),
    (threading.Thread, "a thread"),
    (threading.local, "values of its own for every thread"),
    (multiprocessing.process.BaseProcess, "a worker process"),
    (Executor, "a pool of workers"),
    (io.IOBase, "an open file"),
    (socket.socket, "a socket"),
    (memoryview, "a view of memory"),
)


def attributes(obj: Any) -> dict[str, Any]:
    """The instance dict, through the interpreter's own descriptor; empty where there is none."""
    for base in type(obj).__mro__:
        own = type.__getattribute__(base, "__dict__").get("__dict__")
        if type(own) is types.GetSetDescriptorType:
            found = own.__get__(obj)
            return found if type(found) is dict else {}
    return {}


def slots(obj: Any) -> Iterator[tuple[str, Any]]:
    """The slots that are filled."""
    for base in type(obj).__mro__:
        namespace = type.__getattribute__(base, "__dict__")
        if "__slots__" not in namespace:
            continue
        for name, member in namespace.items():
            if type(member) is types.MemberDescriptorType:
                try:
                    yield name, member.__get__(obj)
                except AttributeError:
                    continue


def instance_parts(obj: Any, *, leave_out: frozenset[str] = frozenset()) -> list[Held]:
    held = [(Label("attr", name), value) for name, value in attributes(obj).items() if name not in leave_out]
    return held + [(Label("slot", name), value) for name, value in slots(obj)]


def open_object(obj: Any, *, contents: bool = True) -> Opened:
    """Open an object that is no leaf; without `contents` the elements of tensors and arrays are left unread."""
    kind = type(obj)
    if issubclass(kind, torch.Tensor):
        return _tensor(obj, contents=contents)
    for base, opener in _OPENERS:
        if issubclass(kind, base):
            return opener(obj)
    if kind in _ITERATORS:
        return _iterator(obj)
    for closed, why in _CLOSED:
        if issubclass(kind, closed):
            return Opened("closed", why=why)
    parts = instance_parts(obj)
    if not parts and not _is_written_in_python(kind):
        return Opened("closed", why="an object of a C extension")
    return Opened("object", parts)


def _is_written_in_python(kind: type) -> bool:
    return bool(kind.__flags__ & (1 << 9)) and kind is not object  # a heap type


def _tensor(tensor: torch.Tensor, *, contents: bool) -> Opened:
    with torch._C.DisableTorchFunctionSubclass():
        held = [(Label("attr", name), value) for name, value in attributes(tensor).items()]
        if tensor.is_leaf and tensor.grad is not None:
            held.append((Label("grad", "grad"), tensor.grad))
        elif tensor.is_leaf and tensor.requires_grad:
            held.append((Label("grad", "grad"), None))
        if not tensor.is_leaf:
            held.append((Label("grad_fn", "grad_fn"), tensor.grad_fn))
        for hooks in ("_backward_hooks", "_post_accumulate_grad_hooks"):
            if getattr(tensor, hooks, None):
                held += [(Label("hooks", hooks), getattr(tensor, hooks))]
        shape = tuple(tensor.shape)
        if tensor.is_leaf:
            held.append((Label("flag", "requires_grad"), bool(tensor.requires_grad)))
        if not contents:
            return Opened("tensor", held)
        content = (str(tensor.dtype), shape, str(tensor.device), encoding.digest(tensor))
        return Opened("tensor", held, content, show_tensor(tensor))


def show_tensor(tensor: torch.Tensor) -> str:
    """dtype, shape and a few values on one line."""
    kind = str(tensor.dtype).removeprefix("torch.")
    if tensor.is_meta:
        return f"{kind}{list(tensor.shape)} on the meta device"
    with torch.no_grad():
        flat = (
            tensor.detach().to_dense().reshape(-1)
            if tensor.layout is not torch.strided
            else tensor.detach().reshape(-1)
        )
        few = flat[:4].tolist()
    values = ", ".join(f"{item:.6g}" if is_a(item, float) else str(item) for item in few)
    if tensor.ndim == 0:
        return f"{values} ({kind})"
    return f"{kind}{list(tensor.shape)} [{values}{', …' if flat.numel() > 4 else ''}]"


def _array(obj: np.ndarray[Any, Any]) -> Opened:
    plain = np.ndarray.view(obj, np.ndarray)
    if plain.dtype.hasobject:
        return Opened("array", [(Label("index", i), item) for i, item in enumerate(plain.reshape(-1).tolist())],
                      (plain.dtype.str, plain.shape))  # fmt: skip
    few = ", ".join(str(item) for item in plain.reshape(-1)[:4].tolist())
    shown = f"{plain.dtype}{list(plain.shape)} [{few}{', …' if plain.size > 4 else ''}]"
    return Opened("array", [], (plain.dtype.str, plain.shape, encoding.digest(plain)), shown)


def _torch_generator(obj: torch.Generator) -> Opened:
    state = encoding.digest(torch.Generator.get_state(obj))
    return Opened("rng", [], (str(obj.device), state), f"generator state {state[:8]}")


def _numpy_bits(obj: Any) -> Opened:
    state = encoding.digest(obj.state)
    return Opened("rng", [], state, f"generator state {state[:8]}")


def _numpy_generator(obj: np.random.Generator) -> Opened:
    return Opened("object", [(Label("bit_generator"), np.random.Generator.bit_generator.__get__(obj))])


def _numpy_random_state(obj: np.random.RandomState) -> Opened:
    state = encoding.digest(np.random.RandomState.get_state(obj, legacy=False))
    return Opened("rng", [], state, f"generator state {state[:8]}")


def _python_random(obj: random.Random) -> Opened:
    state = hashlib.sha256(repr(random.Random.getstate(obj)).encode()).hexdigest()
    return Opened(
        "rng", instance_parts(obj, leave_out=frozenset({"gauss_next"})), state, f"generator state {state[:8]}"
    )


def _module(obj: torch.nn.Module) -> Opened:
    """A module with its registries opened in place: `model.0.weight`, as torch itself names it."""
    registries = ("_parameters", "_buffers", "_modules")
    own = attributes(obj)
    held: list[Held] = []
    order = hashlib.sha256()
    for registry in registries:
        entries: Any = own.get(registry)
        if type(entries) in (dict, OrderedDict):
            held += [(Label("member", (registry, name)), value) for name, value in dict.items(entries)]
            order.update(repr(list(entries)).encode())
    for name, value in own.items():
        empty_hooks = name.startswith("_") and is_a(value, (dict, set)) and not len(value)
        if name not in registries and not empty_hooks:
            held.append((Label("attr", name), value))
    held += [(Label("slot", name), value) for name, value in slots(obj)]
    return Opened("module", held, order=order.digest())


def _dict(obj: dict[Any, Any]) -> Opened:
    keys = list(OrderedDict.keys(obj)) if is_a(obj, OrderedDict) else list(dict.keys(obj))
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


def _list(obj: list[Any]) -> Opened:
    items = list(items_of(obj))
    return _sequence("list", items, obj, None)


def _deque(obj: deque[Any]) -> Opened:
    return _sequence("deque", list(items_of(obj)), obj, obj.maxlen)


def _tuple(obj: tuple[Any, ...]) -> Opened:
    return _sequence("tuple", list(items_of(obj)), obj, None)


def _counted(items: Sized) -> str:
    return "1 item" if len(items) == 1 else f"{len(items)} items"


def _sequence(kind: str, items: list[Any], obj: Any, bound: int | None) -> Opened:
    held = instance_parts(obj) if kind != "tuple" or type(obj) is not tuple else []
    if all_plain(iter(items)):
        return Opened(kind, held, ("plain", bound, encoding.digest(items)), shorten(repr(items)))
    return Opened(kind, [(Label("index", i), item) for i, item in enumerate(items)] + held, (len(items), bound),
                  _counted(items))  # fmt: skip


def _set(obj: Any) -> Opened:
    items = list(items_of(obj))
    kind = "set" if is_a(obj, set) else "frozenset"
    if all_plain(iter(items)):
        order = hashlib.sha256(repr(items).encode()).digest()
        shown = "{" + ", ".join(sorted(map(repr, items))) + "}"
        return Opened(kind, instance_parts(obj), encoding.digest(frozenset(items)), shorten(shown), order=order)
    return Opened(kind, [(Label("element", i), item) for i, item in enumerate(items)], len(items), _counted(items))


def _function(obj: types.FunctionType) -> Opened:
    code = obj.__code__
    held: list[Held] = [
        (Label("cell", name), cell) for name, cell in zip(code.co_freevars, obj.__closure__ or (), strict=True)
    ]
    defaults = obj.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount] if defaults else ()
    held += [(Label("default", name), value) for name, value in zip(names, defaults, strict=True)]
    held += [(Label("kwdefault", name), value) for name, value in (obj.__kwdefaults__ or {}).items()]
    held += [(Label("attr", name), value) for name, value in obj.__dict__.items()]
    return Opened("function", held, (obj.__module__, obj.__qualname__), f"{obj.__qualname__}()")


def _method(obj: types.MethodType) -> Opened:
    return Opened("method", [(Label("self"), obj.__self__), (Label("func"), obj.__func__)])


def _bound_builtin(obj: Any) -> Opened:
    return Opened("method", [(Label("self"), obj.__self__)], obj.__name__)


def _partial(obj: functools.partial[Any]) -> Opened:
    base = functools.partial
    held: list[Held] = [(Label("func"), base.func.__get__(obj))]
    held += [(Label("argument", i), item) for i, item in enumerate(base.args.__get__(obj))]
    held += [(Label("keyword", name), item) for name, item in base.keywords.__get__(obj).items()]
    return Opened("partial", held + instance_parts(obj))


def _cell(obj: types.CellType) -> Opened:
    try:
        return Opened("cell", [(Label("contents"), obj.cell_contents)])
    except ValueError:
        return Opened("cell")


def _weakref(obj: weakref.ref[Any]) -> Opened:
    return Opened("weakref", [(Label("func"), weakref.ref.__call__(obj))])


def _cached_function(obj: Any) -> Opened:
    """A function behind `functools.cache`: the wrapped one, and where the interpreter shows them, its results."""
    import gc  # noqa: PLC0415 -- the only look at what such a function refers to

    own = attributes(obj)
    kept = [item for item in gc.get_referents(obj) if type(item) is dict and item is not own]
    held: list[Held] = [(Label("attr", name), value) for name, value in own.items() if name != "__wrapped__"]
    held.append((Label("wrapped"), own.get("__wrapped__")))
    if kept:
        held.append((Label("attr", "cache"), kept[0]))
    return Opened("function", held, ("cached", own.get("__qualname__")), "a cached function")


def _generator(obj: Any) -> Opened:
    state, instruction = frames.position(obj)
    values, cells, stack = frames.variables(obj)
    code = obj.gi_code if is_a(obj, types.GeneratorType) else obj.cr_code
    frame = frames.frame_of(obj)
    line = frame.f_lineno if frame is not None else 0
    held: list[Held] = [(Label("cell", name), cell) for name, cell in cells.items()]
    held += [(Label("local", name), value) for name, value in values.items()]
    loops = frames.loops_at(code, line) if state in ("suspended", "running") else []
    delegate = obj.gi_yieldfrom if is_a(obj, types.GeneratorType) and state == "suspended" else None
    number = 0
    for i, item in enumerate(stack):
        if callable(getattr(type(item), "__next__", None)):
            name = loops[number] if number < len(loops) else ""
            number += 1
            if item is delegate:
                name = frames.delegated_at(code, line)
            held.append((Label("stack", (i, name)), item))
        elif not is_plain(item):
            held.append((Label("stack", (i, "")), item))
    text = frames.source_line(code, line)
    shown = f"{code.co_name}() {state}" + (f" at line {line}: {text}" if state == "suspended" else "")
    if state == "running":
        state, instruction = "suspended", -2
    return Opened("generator", held, (code.co_qualname, state, instruction), shown)


def _async_generator(obj: Any) -> Opened:
    return Opened("closed", why=f"an asynchronous generator, {obj.ag_code.co_name}()")


def reduce_iterator(obj: Any) -> tuple[Any, ...]:
    """What a builtin iterator would be copied from: how it is built, of what, and its state where it has one."""
    kind: Any = type(obj)
    reduced: tuple[Any, ...] = kind.__reduce__(obj)
    return reduced


def _iterator(obj: Any) -> Opened:
    """A builtin iterator, by what it would be copied from."""
    kind = type(obj)
    try:
        reduced = reduce_iterator(obj)
    except TypeError as error:
        return Opened("closed", why=f"an iterator that the interpreter does not open ({error})")
    arguments: tuple[Any, ...] = reduced[1] if len(reduced) > 1 else ()
    state = reduced[2] if len(reduced) > 2 else None
    if reduced[0] is iter and len(arguments) == 1 and type(arguments[0]) in (list, tuple, range, str, bytes):
        # What is left matters, not how it is spelled: a range that starts later is the same iterator.
        rest = list(itertools.islice(arguments[0], state if is_a(state, int) else 0, None))
        if all_plain(iter(rest)):
            return Opened("iterator", [], ("rest", encoding.digest(rest)), shorten(f"{len(rest)} left: {rest[:12]!r}"))
    held = [(Label("iterable", i), item) for i, item in enumerate(arguments)]
    if state is not None:
        held.append((Label("iterable", "state"), state))
    return Opened(
        "iterator", held, shown=f"{kind.__name__} at {state!r}" if is_plain(state) and state is not None else ""
    )


def _bytes_like(obj: Any) -> Opened:
    return Opened("bytes", instance_parts(obj), hashlib.sha256(bytes(obj)).digest(), _counted(obj))


def _logger(_: Any) -> Opened:
    return Opened("skipped")


def _storage(obj: torch.UntypedStorage) -> Opened:
    return Opened("bytes", [], obj.nbytes(), f"{obj.nbytes()} bytes")


def _autograd(_: Any) -> Opened:
    return Opened("closed", why="the autograd graph of a tensor")


def _view(obj: Any) -> Opened:
    return Opened("view", [], len(obj))


def _subclassed_scalar(obj: Any) -> Opened:
    """An instance of a class derived from a number or a string: the value, and the attributes that came with it."""
    bases: tuple[Any, ...] = (int, float, complex, str, bytes)
    base = next(base for base in bases if issubclass(type(obj), base))
    shown = base.__repr__(obj)
    return Opened("object", instance_parts(obj), shown, shorten(shown))


_OPENERS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Opened]], ...] = (
    (torch.nn.Module, _module),
    (dict, _dict),
    (list, _list),
    (tuple, _tuple),
    ((set, frozenset), _set),
    (deque, _deque),
    (np.ndarray, _array),
    (torch.Generator, _torch_generator),
    (np.random.Generator, _numpy_generator),
    (np.random.BitGenerator, _numpy_bits),
    (np.random.RandomState, _numpy_random_state),
    (random.Random, _python_random),
    (types.FunctionType, _function),
    (types.MethodType, _method),
    ((types.BuiltinFunctionType, types.MethodWrapperType), _bound_builtin),
    (functools.partial, _partial),
    (CachedFunction, _cached_function),
    (types.CellType, _cell),
    (weakref.ref, _weakref),
    ((types.GeneratorType, types.CoroutineType), _generator),
    (types.AsyncGeneratorType, _async_generator),
    ((bytearray, array.array), _bytes_like),
    ((logging.Logger, logging.Handler, logging.Manager), _logger),
    (torch.UntypedStorage, _storage),
    (torch.autograd.graph.Node, _autograd),
    ((type({}.keys()), type({}.values()), type({}.items())), _view),
    ((int, float, complex, str, bytes), _subclassed_scalar),
)
"""How an object is opened, by its class; the first that fits."""

__all__ = ["Opened", "attributes", "collections", "instance_parts", "open_object", "show_tensor", "slots"]
