"""Class membership by the class alone."""

from __future__ import annotations

from typing import Any, TypeGuard, TypeVar

Kind = TypeVar("Kind")


def is_a(value: Any, kind: type[Kind] | tuple[type[Kind], ...]) -> TypeGuard[Kind]:
    """Whether a value is of a class: `isinstance` would ask the value itself for its `__class__`."""
    return issubclass(type(value), kind)
