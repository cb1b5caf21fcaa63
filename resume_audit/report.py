"""What an audit has found, as data."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import dataclass
from typing import Any

EXIT_STATUS = {"EXACT": 0, "DIVERGES": 1, "ERROR": 2, "ABSTAIN": 3}


@dataclass(frozen=True)
class Report:
    """One audit's report; `data` is shaped by `schemas/audit.schema.json`."""

    data: dict[str, Any]

    @property
    def verdict(self) -> str:
        """EXACT, DIVERGES, ABSTAIN or ERROR."""
        return str(self.data["verdict"])

    @property
    def exit_status(self) -> int:
        """What the command line ends with."""
        return EXIT_STATUS[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """A copy of the data."""
        return copy.deepcopy(self.data)

    def to_json(self) -> str:
        """Strict JSON, for a file; half a surrogate pair, which no file can hold, is written as its escape."""
        text = json.dumps(self.data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    def to_markdown(self) -> str:
        """What one pastes into an issue."""
        from resume_audit.render import to_markdown  # noqa: PLC0415 -- rich is imported when something is drawn

        return to_markdown(self.data)

    def to_html(self) -> str:
        """A self-contained page."""
        from resume_audit.render import to_html  # noqa: PLC0415 -- likewise

        return to_html(self.data)


def number(value: float | None) -> float | str | None:
    """A difference as the schema wants it: `inf` by name, since strict JSON has no infinity."""
    if value is None:
        return None
    return value if math.isfinite(value) else "inf"
