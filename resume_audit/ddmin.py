"""Delta debugging: the smallest set that is still enough (Zeller and Hildebrandt 2002, `ddmin`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Enough = Callable[[frozenset[Item]], bool]


class BudgetError(Exception):
    """The number of tests that may be made is used up."""


def ddmin(items: Sequence[Item], enough: Enough[Item]) -> list[Item]:
    """A part of `items` that is enough and of which no single item can be left out, given that all together are enough.

    `enough` is asked about sets of items and is taken to be a function of the set alone. Where it raises
    BudgetError the smallest set found by then is returned.
    """
    kept = list(items)
    pieces = 2
    try:
        if kept and enough(frozenset()):
            return []
        while len(kept) >= 2:
            size = -(-len(kept) // pieces)
            parts = [kept[at : at + size] for at in range(0, len(kept), size)]
            smaller = next((part for part in parts if enough(frozenset(part))), None)
            if smaller is not None:
                kept, pieces = smaller, 2
                continue
            rests = [[item for item in kept if item not in part] for part in parts] if len(parts) > 2 else []
            rest = next((rest for rest in rests if enough(frozenset(rest))), None)
            if rest is not None:
                kept, pieces = rest, max(len(parts) - 1, 2)
                continue
            if len(parts) >= len(kept):
                break
            pieces = min(2 * len(parts), len(kept))
    except BudgetError:
        pass
    return kept
