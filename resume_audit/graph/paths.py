"""Paths as a programmer would write them."""

from __future__ import annotations

import keyword
import re
from typing import Any

from resume_audit.graph.nodes import Label

BARE = frozenset({"root", "namespace", "adapted", "setting", "cell", "global", "class", "self"})
"""Places whose content has a name of its own, wherever it is held."""

TRANSPARENT = frozenset(
    {
        "contents",
        "func",
        "wrapped",
        "iterable",
        "bit_generator",
        "current",
        "memory",
        "read_ahead",
        "position",
        "following",
    }
)
"""Places that a reader does not see."""


LONGEST = 300
"""Characters of a path that are kept: its beginning and its end."""


def join(holder: str, label: Label, key_path: str | None = None) -> str:
    """The path of what lies at `label` in the thing called `holder`."""
    path = _join(holder, label, key_path)
    return path if len(path) <= LONGEST else f"{path[: LONGEST // 2]}…{path[1 - LONGEST // 2 :]}"


def _join(holder: str, label: Label, key_path: str | None) -> str:
    name = label.name
    if label.kind in BARE:
        return str(name)
    if label.kind in TRANSPARENT:
        return holder
    if label.kind == "key":
        if key_path is not None:
            return f"{holder}[id({key_path})]" if name == "id" else f"{holder}[{key_path}]"
        if type(name) is str and name.isidentifier() and not keyword.iskeyword(name):
            return f"{holder}.{name}"
        return f"{holder}[{shorten(repr(name), 40)}]"
    if label.kind in ("index", "element", "argument", "abreast"):
        return f"{holder}[{name}]"
    if label.kind == "listed":
        return f"{holder}.{name[0]}[{name[1]}]"
    if label.kind == "member":
        return f"{holder}.{name[1]}"
    if label.kind == "stack":
        return f"{holder}.iter({name[1]})" if name[1] else f"{holder}.iter[{name[0]}]"
    return f"{holder}.{unmangled(str(name))}"


def unmangled(name: str) -> str:
    """`__x` for `_Class__x`."""
    return re.sub(r"^_[A-Za-z][A-Za-z0-9_]*?(?=__[A-Za-z])", "", name)


def snake(name: str) -> str:
    """The usual name of an instance of a class: `early_stopping` for `EarlyStopping`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.lstrip("_")).lower()


def shorten(text: str, width: int = 100) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 1]}…"


def show(value: Any) -> str:
    """A builtin value as one line."""
    return shorten(repr(value))
