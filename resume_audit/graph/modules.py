"""Which modules are the job's, and which of their globals its functions use."""

from __future__ import annotations

import sys
import sysconfig
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

_HERE = str(Path(__file__).resolve().parents[1])
_STANDARD = tuple(f"{Path(sysconfig.get_path(name)).resolve()}/" for name in ("stdlib", "platstdlib"))
_INSTALLED = frozenset({"site-packages", "dist-packages"})


@cache
def is_the_jobs(name: str, also: str = "") -> bool:
    """Whether a module is the job's own code: not the standard library's, nor an installed package's but `also`."""
    top = name.partition(".")[0]
    if also and top == also.partition(".")[0]:
        return True
    if top in ("torch", "numpy"):
        return False  # wherever they are installed
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None) if module is not None else None
    if name == "__main__":
        return True
    if not file:
        return False
    place = Path(file).resolve()
    return not (str(place).startswith((_HERE, *_STANDARD)) or _INSTALLED.intersection(place.parts))


def mentioned(namespace: dict[str, Any], module: str) -> frozenset[str]:
    """The names that any code in a module mentions, as globals or as attributes of whatever."""
    names: set[str] = set()
    for value in list(namespace.values()):
        if issubclass(type(value), (types.FunctionType, type)) and value.__module__ == module:
            for code in _codes(value):
                names.update(code.co_names)
    return frozenset(names)


def data_of(namespace: dict[str, Any], names: frozenset[str]) -> list[str]:
    """Which of some names are a module's data, in the order of the module."""
    return [name for name, value in namespace.items() if name in names and is_data(name, value)]


def modules_used(namespace: dict[str, Any], names: frozenset[str]) -> list[types.ModuleType]:
    """The modules that a module holds, and those that its functions import for themselves."""
    held = [value for value in namespace.values() if issubclass(type(value), types.ModuleType)]
    imported = [sys.modules[name] for name in sorted(names) if name in sys.modules]
    return list({id(module): module for module in [*held, *imported]}.values())


def is_data(name: str, value: Any) -> bool:
    """Whether a global (or an attribute of a class) is data rather than code."""
    if name.startswith("__"):
        return False
    kind = type(value)
    code = (
        types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, property, staticmethod, classmethod,
        types.GetSetDescriptorType, types.MemberDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType,
    )  # fmt: skip
    return not issubclass(kind, code)


def _codes(value: Any) -> Iterator[types.CodeType]:
    stack: list[Any] = [value]
    seen: set[int] = set()
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, types.FunctionType):
            stack.append(item.__code__)
        elif isinstance(item, types.CodeType):
            yield item
            stack.extend(constant for constant in item.co_consts if isinstance(constant, types.CodeType))
        elif isinstance(item, type):
            stack.extend(vars(item).values())
        elif isinstance(item, (staticmethod, classmethod)):
            stack.append(item.__func__)
        elif isinstance(item, property):
            stack.extend(part for part in (item.fget, item.fset, item.fdel) if part is not None)
