"""How a run ended when it did not end well."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

HOUSE = str(Path(__file__).resolve().parents[1])


@dataclass(frozen=True)
class Failure:
    """An exception of the job's, or the end of its process.

    phase: what was being done; step: at which step, None before the first; type, message, traceback: the exception's.
    """

    phase: str
    step: int | None
    type: str
    message: str
    traceback: str = ""

    @classmethod
    def of(cls, error: BaseException, phase: str, step: int | None) -> Failure:
        name = type(error).__qualname__
        try:
            message = str(error)
        except Exception:  # noqa: BLE001 -- an exception of the job's may not even be able to say what it is
            message = "(an exception that cannot be shown)"
        return cls(phase, step, name, message, job_traceback(error))

    def to_dict(self) -> dict[str, Any]:
        return {
            "phase": self.phase, "step": self.step, "type": self.type, "message": self.message,
            "traceback": self.traceback,
        }  # fmt: skip


def job_traceback(error: BaseException) -> str:
    """The traceback from where the job's own code begins: frames of this package at its start are left out."""
    place: TracebackType | None = error.__traceback__
    while place is not None and place.tb_next is not None and _ours(place):
        place = place.tb_next
    if place is not None and _ours(place):
        place = None
    try:
        return "".join(traceback.format_exception(type(error), error.with_traceback(place), place))
    except Exception:  # noqa: BLE001 -- likewise
        return "".join(traceback.format_tb(place))


def _ours(place: TracebackType) -> bool:
    file = place.tb_frame.f_code.co_filename
    return file.startswith((HOUSE, "<frozen")) or "importlib" in file
