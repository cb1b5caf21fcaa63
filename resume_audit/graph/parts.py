"""How each kind of object is opened: what it holds itself, and its parts.

Nothing here calls a method that a job has defined: attributes are read through the interpreter's own
descriptors, builtin containers by the builtin's own iteration, tensors and generators by torch's and NumPy's
functions.
"""

from __future__ import annotations

import array
import contextvars
import functools
import gc
import hashlib
import io
import logging
import multiprocessing.process
import queue
import random
import socket
import sys
import threading
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Executor
from multiprocessing import sharedctypes
from typing import Any

import numpy as np
import torch

from resume_audit.graph import containers, frames
from resume_audit.graph.contents import (
    CData,
    open_array,
    open_bytes,
    open_generator,
    open_memory,
    open_seeds,
    open_tensor,
)
from resume_audit.graph.iterators import (
    ITERATORS,
    READ_AHEAD,
    TEE,
    is_iterator,
    open_closed_iterator,
    open_iterator,
    open_read_ahead,
    open_tee,
)
from resume_audit.graph.leaves import is_plain, type_name
from resume_audit.graph.nodes import Label
from resume_audit.graph.opened import Held, Opened, attributes, hides_something, instance_parts, slots
from resume_audit.graph.paths import shorten
from resume_audit.graph.types import is_a

CachedFunction = type(functools.cache(lambda: None))
"""What `functools.cache` and `functools.lru_cache` make of a function."""

_CLOSED: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (
        (type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Semaphore, threading.Event),
        "a lock",
    ),
    (threading.Thread, "a thread"),
    (multiprocessing.process.BaseProcess, "a worker process"),
    (Executor, "a pool of workers"),
    (io.IOBase, "an open file"),
    (socket.socket, "a socket"),
    (memoryview, "a view of memory"),
)


def open_object(obj: Any, *, contents: bool = True) -> Opened:
    """Open an object that is no leaf; without `contents` the elements of tensors and arrays are left unread."""
    kind = type(obj)
    if issubclass(kind, torch.Tensor):
        return open_tensor(obj, contents=contents)
    for base, opener in _OPENERS:
        if issubclass(kind, base):
            return opener(obj)
    if kind in ITERATORS:
        return open_iterator(obj)
    for closed, why in _CLOSED:
        if issubclass(kind, closed):
            return Opened("closed", why=why)
    if is_iterator(kind):
        return open_closed_iterator(obj)
    parts = instance_parts(obj)
    if hides_something(kind):
        return Opened("closed", parts, why=f"an object made in C, {type_name(kind)}")
    return Opened("object", parts)


def _numpy_generator(obj: np.random.Generator) -> Opened:
    return Opened("numpy_generator", [(Label("bit_generator"), np.random.Generator.bit_generator.__get__(obj))])


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


def _context_variable(obj: contextvars.ContextVar[Any]) -> Opened:
    try:
        return Opened("variable", [(Label("current"), contextvars.ContextVar.get(obj))])
    except LookupError:
        return Opened("variable")


def _thread_local(obj: threading.local) -> Opened:
    """The attributes that an object has in this thread, which is the one that made it and runs the job."""
    own: dict[str, Any] = threading.local.__getattribute__(obj, "__dict__")
    return Opened("thread_local", [(Label("thread_local", name), value) for name, value in own.items()])


def _exception(obj: BaseException) -> Opened:
    return Opened("object", [(Label("attr", "args"), vars(BaseException)["args"].__get__(obj)), *instance_parts(obj)])


def _synchronized(obj: Any) -> Opened:
    """A value shared between processes: the memory behind the lock."""
    return Opened("object", [(Label("memory"), attributes(obj).get("_obj"))])


_LOGGING = frozenset({"lock", "stream", "formatter", "manager"})


def _logging(obj: Any) -> Opened:
    """Of what logging itself has made only what a job has hung on it; a handler of the job's with all that it holds."""
    own = attributes(obj)
    held = [
        (Label("listed", (name, i)), item)
        for name in ("handlers", "filters")
        if type(own.get(name)) is list
        for i, item in enumerate(own[name])
        if attributes(item).get("filters") or not _is_standard(type(item))
    ]
    if is_a(obj, logging.Logger) and own.get("parent") is not None:
        held.append((Label("attr", "parent"), own["parent"]))
    if _is_standard(type(obj)):
        return Opened("skipped", held)
    return Opened("object", held + instance_parts(obj, leave_out=_LOGGING | {"handlers", "filters", "parent"}))


def _is_standard(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in sys.stdlib_module_names


def _skipped(_: Any) -> Opened:
    return Opened("skipped")


def _storage(obj: torch.UntypedStorage) -> Opened:
    return Opened("bytes", [], obj.nbytes(), f"{obj.nbytes()} bytes")


def _autograd(_: Any) -> Opened:
    return Opened("closed", why="the autograd graph of a tensor")


def _subclassed_scalar(obj: Any) -> Opened:
    """An instance of a class derived from a number or a string: the value, and the attributes that came with it."""
    bases: tuple[Any, ...] = (int, float, complex, str, bytes)
    base = next(base for base in bases if issubclass(type(obj), base))
    shown = base.__repr__(obj)
    return Opened("object", instance_parts(obj), shown, shorten(shown))


_OPENERS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Opened]], ...] = (
    (torch.nn.Module, _module),
    (dict, containers.open_dict),
    (list, containers.open_list),
    (tuple, containers.open_tuple),
    ((set, frozenset), containers.open_set),
    (deque, containers.open_deque),
    (queue.SimpleQueue, containers.open_queue),
    (types.MappingProxyType, containers.open_proxy),
    (np.ndarray, open_array),
    (np.random.Generator, _numpy_generator),
    (np.random.SeedSequence, open_seeds),
    ((torch.Generator, np.random.BitGenerator, np.random.RandomState, random.Random), open_generator),
    (types.FunctionType, _function),
    (types.MethodType, _method),
    ((types.BuiltinFunctionType, types.MethodWrapperType), _bound_builtin),
    (functools.partial, _partial),
    (CachedFunction, _cached_function),
    (types.CellType, _cell),
    (weakref.ref, _weakref),
    ((types.GeneratorType, types.CoroutineType), _generator),
    (types.AsyncGeneratorType, _async_generator),
    (contextvars.ContextVar, _context_variable),
    (threading.local, _thread_local),
    (BaseException, _exception),
    (TEE, open_tee),
    (READ_AHEAD, open_read_ahead),
    ((bytearray, array.array), open_bytes),
    (CData, open_memory),
    (sharedctypes.SynchronizedBase, _synchronized),
    ((logging.Logger, logging.Handler), _logging),
    (logging.Manager, _skipped),
    (torch.UntypedStorage, _storage),
    (torch.autograd.graph.Node, _autograd),
    ((type({}.keys()), type({}.values()), type({}.items())), containers.open_view),
    ((int, float, complex, str, bytes), _subclassed_scalar),
)
"""How an object is opened, by its class; the first that fits."""
