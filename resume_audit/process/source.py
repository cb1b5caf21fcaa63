"""Where a job's factory is found, in a form that another process can follow."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

Factory = Callable[[int], Any]


@dataclass(frozen=True)
class Source:
    """A factory by reference.

    kind: `file` (place is a path), `module` (place is a dotted name), `pickle` (payload is the factory itself,
    pickled), or `object` (payload is the factory, which only a fork of this very process has).
    """

    kind: str
    place: str
    factory: str
    payload: Any = None
    search_path: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))
    directory: str = field(default_factory=os.getcwd)

    @property
    def label(self) -> str:
        return f"{self.place}:{self.factory}" if self.place else self.factory

    def find(self) -> Factory:
        """Import what the factory needs and return it. Raises whatever the import raises; AttributeError, TypeError."""
        if self.kind == "object":
            return self.payload  # type: ignore[no-any-return]
        sys.path[:] = self.search_path
        if self.kind == "pickle":
            found: Factory = pickle.loads(self.payload)
            return found
        module = import_file(Path(self.place)) if self.kind == "file" else importlib.import_module(self.place)
        try:
            factory = reduce(getattr, self.factory.split("."), module)
        except AttributeError:
            raise AttributeError(f"{self.place} has no factory named {self.factory}") from None
        if not callable(factory):
            raise TypeError(f"{self.factory} in {self.place} is not callable")
        chosen: Factory = factory
        return chosen


def import_file(path: Path) -> Any:
    """The module in a file, imported under the name of the file, with its folder on the search path as for a script."""
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    name = path.stem
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def parse(text: str, factory: str | None = None) -> Source:
    """The source that a command line names: `FILE.py[:factory]` or `package.module[:factory]`."""
    place, colon, named = text.rpartition(":")
    if not colon or "/" in named or named.endswith(".py"):
        place, named = text, ""
    chosen = factory or named or "make_job"
    if place.endswith(".py") or "/" in place or Path(place).is_file():
        return Source("file", place, chosen)
    return Source("module", place, chosen, search_path=("", *sys.path))


def of(factory: Factory) -> Source:
    """The source of a factory at hand: by reference where another process can follow it, else the object itself."""
    name = getattr(factory, "__qualname__", type(factory).__qualname__)
    module = getattr(factory, "__module__", "") or ""
    if module == "__main__" or "<" in name:
        return Source("object", "", name, factory)  # no other process can import it
    try:
        payload = pickle.dumps(factory)
    except Exception:  # noqa: BLE001 -- whatever keeps it from being pickled
        return Source("object", "", name, factory)
    return Source("pickle", module, name, payload)
