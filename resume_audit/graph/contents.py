"""Objects that are a block of numbers: how their content is told, carried and set."""

from __future__ import annotations

import array
import ctypes
import hashlib
import pickle
import random
from typing import Any

import numpy as np
import torch

from resume_audit import encoding
from resume_audit.graph.containers import counted
from resume_audit.graph.nodes import Label
from resume_audit.graph.opened import Held, Opened, attributes, instance_parts
from resume_audit.graph.paths import shorten
from resume_audit.graph.types import is_a

# ---------------------------------------------------------------------------------------------------------- tensors


def open_tensor(tensor: torch.Tensor, *, contents: bool) -> Opened:
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
        if tensor.is_leaf:
            held.append((Label("flag", "requires_grad"), bool(tensor.requires_grad)))
        if not contents:
            return Opened("tensor", held)
        return Opened("tensor", held, _tensor_content(tensor), show_tensor(tensor))


def _tensor_content(tensor: torch.Tensor) -> tuple[str, Any, str, str]:
    kind, device = str(tensor.dtype), str(tensor.device)
    if tensor.is_nested:
        pieces = tensor.detach().unbind()
        return kind, ("nested", *(tuple(p.shape) for p in pieces)), device, encoding.digest(list(pieces))
    shape: tuple[Any, ...] = tuple(tensor.shape)
    if tensor.is_mkldnn:
        return kind, ("mkldnn", *shape), device, encoding.digest(tensor.detach().to_dense())
    return kind, shape, device, encoding.digest(tensor)


def show_tensor(tensor: torch.Tensor) -> str:
    """dtype, shape and a few values on one line."""
    kind = str(tensor.dtype).removeprefix("torch.")
    with torch.no_grad():
        plain = tensor.detach()
        if tensor.is_nested:
            return f"{kind}, {counted(plain.unbind())} in a nested tensor"
        shape = list(tensor.shape)
        if tensor.is_meta:
            return f"{kind}{shape} on the meta device"
        if tensor.layout is torch.sparse_coo:
            plain, shape = plain._values(), [*shape, "sparse"]  # type: ignore[list-item]
        elif tensor.layout is not torch.strided:
            plain = plain.to_dense() if tensor.is_mkldnn else plain.values()
            shape = [*shape, str(tensor.layout).removeprefix("torch.").strip("_")]  # type: ignore[list-item]
        elif tensor.is_quantized:
            plain = plain.dequantize()
        flat = plain.reshape(-1)
        few = flat[:4].tolist()
    values = ", ".join(f"{item:.6g}" if is_a(item, float) else str(item) for item in few)
    if not shape:
        return f"{values} ({kind})"
    return f"{kind}[{', '.join(map(str, shape))}] [{values}{', …' if flat.numel() > 4 else ''}]"


def storage_of(tensor: torch.Tensor) -> tuple[int, int, tuple[int, ...]] | None:
    """The address of the storage that a tensor lies in, and where in it; None where there is none of the usual kind."""
    with torch._C.DisableTorchFunctionSubclass():
        if not _is_strided(tensor) or tensor.is_meta or tensor.numel() == 0:
            return None
        try:
            return tensor.untyped_storage()._cdata, int(tensor.storage_offset()), tuple(tensor.stride())
        except (RuntimeError, NotImplementedError):  # a wrapper around other tensors
            return None


def _is_strided(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not (tensor.is_nested or tensor.is_quantized)


def copy_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """The values alone.

    Raises an exception, of whichever class, where a tensor of this layout cannot be carried to another process.
    """
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        if _is_strided(tensor):
            return tensor.detach().as_subclass(torch.Tensor).clone(memory_format=torch.preserve_format)
        copied = tensor.detach().clone()
        pickle.dumps(copied)
        return copied


def set_tensor(live: torch.Tensor, value: torch.Tensor) -> bool:
    """Give a tensor other values, in place. Whether that is possible."""
    try:
        if _is_strided(live) and _is_strided(value) and live.shape == value.shape and live.dtype == value.dtype:
            live.data.copy_(value)
        elif live.layout in (torch.strided, torch.sparse_coo):
            live.data = value.clone()
        else:
            return False
    except (RuntimeError, TypeError):
        return False
    return True


# ----------------------------------------------------------------------------------------------------------- arrays

_MAPPED = frozenset({"_mmap"})
"""What an array in a file has beside its values."""


def open_array(obj: np.ndarray[Any, Any]) -> Opened:
    plain = np.ndarray.view(obj, np.ndarray)
    held = instance_parts(obj, leave_out=_MAPPED) if type(obj) is not np.ndarray else []
    if plain.dtype.hasobject:
        items: list[Held] = [(Label("index", i), item) for i, item in enumerate(plain.reshape(-1).tolist())]
        return Opened("array", items + held, (plain.dtype.str, plain.shape))
    few = ", ".join(str(item) for item in plain.reshape(-1)[:4].tolist())
    shown = f"{plain.dtype}{list(plain.shape)} [{few}{', …' if plain.size > 4 else ''}]"
    return Opened("array", held, (plain.dtype.str, plain.shape, encoding.digest(plain)), shown)


def copy_array(live: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.array(np.ndarray.view(live, np.ndarray), copy=True)


def set_array(live: np.ndarray[Any, Any], value: np.ndarray[Any, Any]) -> bool:
    """Give an array other values, in place. Whether that is possible."""
    plain = np.ndarray.view(live, np.ndarray)
    if plain.shape != value.shape or plain.dtype != value.dtype or not plain.flags.writeable:
        return False
    plain[...] = value
    return True


def as_array_of(kind: Any, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The values as an array of a class, without the attributes of one."""
    return value.copy() if kind is np.ndarray else np.ndarray.view(value.copy(), kind)


# ------------------------------------------------------------------------------------------------------- generators


def open_generator(obj: Any) -> Opened:
    """A generator of torch, NumPy or Python, by its state."""
    held: list[Held] = []
    where = ""
    if isinstance(obj, torch.Generator):
        where = str(obj.device)
    elif isinstance(obj, np.random.BitGenerator):
        held = [(Label("seeds", "seed_seq"), np.random.BitGenerator.seed_seq.__get__(obj))]
    elif isinstance(obj, random.Random):
        held = instance_parts(obj, leave_out=frozenset({"gauss_next"}))
    state = generator_state(obj)
    told = (
        hashlib.sha256(repr(state).encode()).hexdigest() if isinstance(obj, random.Random) else encoding.digest(state)
    )
    return Opened("rng", held, (where, told), f"generator state {told[:8]}")


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


def open_seeds(obj: np.random.SeedSequence) -> Opened:
    """What seeds are drawn from: the entropy, the place in the tree, and how many children it has already had."""
    state = seeds_state(obj)
    key = f", spawn_key={state['spawn_key']}" if state["spawn_key"] else ""
    shown = f"entropy={shorten(str(state['entropy']), 24)}{key}, {state['n_children_spawned']} spawned"
    return Opened("seeds", [], encoding.digest(state), shown)


def seeds_state(seeds: np.random.SeedSequence) -> dict[str, Any]:
    state: dict[str, Any] = np.random.SeedSequence.state.__get__(seeds)
    return state


def set_seeds(live: np.random.SeedSequence, state: dict[str, Any]) -> bool:
    """Let a sequence of seeds have had as many children as another; they only ever get more. Whether that suffices."""
    now = seeds_state(live)
    missing = state["n_children_spawned"] - now["n_children_spawned"]
    caught_up = now | {"n_children_spawned": state["n_children_spawned"]}
    if missing < 0 or encoding.digest(caught_up) != encoding.digest(state):
        return False
    np.random.SeedSequence.spawn(live, missing)
    return True


# ----------------------------------------------------------------------------------------------------------- memory

CData: Any = ctypes.c_int.__mro__[2]
"""What all objects of ctypes are."""

_ADDRESSES = frozenset("OPZz")


def open_bytes(obj: Any) -> Opened:
    return Opened("bytes", instance_parts(obj), hashlib.sha256(bytes(obj)).digest(), counted(obj))


def open_memory(obj: Any) -> Opened:
    """Numbers and structures of ctypes, by their bytes; an address means nothing in another process."""
    kind = type(obj)
    held = instance_parts(obj, leave_out=frozenset({"_wrapper", "_objects"}))
    if _has_address(kind):
        return Opened("closed", held, why="an address in memory")
    content = memory_bytes(obj)
    if issubclass(kind, ctypes.c_int.__mro__[1]):
        shown = repr(vars(ctypes.c_int.__mro__[1])["value"].__get__(obj))
    elif issubclass(kind, ctypes.Array):
        few = ", ".join(map(str, ctypes.Array.__getitem__(obj, slice(0, 4))))
        shown = f"[{few}{', …' if ctypes.Array.__len__(obj) > 4 else ''}]"
    else:
        shown = f"{kind.__name__} {content[:16].hex()}{'…' if len(content) > 16 else ''}"
    return Opened("bytes", held, hashlib.sha256(content).digest(), shorten(shown))


def _has_address(kind: Any) -> bool:
    if issubclass(kind, ctypes.Array):
        return _has_address(kind._type_)
    if issubclass(kind, (ctypes.Structure, ctypes.Union)):
        return any(_has_address(field[1]) for base in kind.__mro__ for field in vars(base).get("_fields_", ()))
    return kind._type_ in _ADDRESSES if issubclass(kind, ctypes.c_int.__mro__[1]) else True


def memory_bytes(live: Any) -> bytes:
    return ctypes.string_at(ctypes.addressof(live), ctypes.sizeof(live)) if is_a(live, CData) else bytes(live)


def set_memory(live: Any, content: bytes) -> bool:
    """Give a piece of memory other bytes, in place. Whether that is possible."""
    if is_a(live, CData):
        if ctypes.sizeof(live) != len(content):
            return False
        ctypes.memmove(ctypes.addressof(live), content, len(content))
    elif isinstance(live, array.array):
        array.array.__delitem__(live, slice(None))
        array.array.frombytes(live, content)
    elif isinstance(live, bytearray):
        bytearray.__setitem__(live, slice(None), content)
    else:
        return False
    return True


def memory_of(kind: Any, content: bytes, typecode: str) -> Any:
    """A new piece of memory of a class."""
    if issubclass(kind, CData):
        return kind.from_buffer_copy(content)
    return array.array(typecode, content) if issubclass(kind, array.array) else bytearray(content)
