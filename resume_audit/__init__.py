"""Does a training job resume exactly, and if not, what was lost: proven."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resume_audit.auditor import audit
    from resume_audit.job import Attributes, Generator, Gradients, Job, Rng, Stateful
    from resume_audit.options import UsageError
    from resume_audit.process.launcher import keep_servers
    from resume_audit.report import Report
    from resume_audit.testing import assert_exact

_PLACES = {
    "Attributes": "job", "Generator": "job", "Gradients": "job", "Job": "job", "Report": "report", "Rng": "job",
    "Stateful": "job", "UsageError": "options", "assert_exact": "testing", "audit": "auditor",
    "keep_servers": "process.launcher",
}  # fmt: skip

__all__ = [
    "Attributes", "Generator", "Gradients", "Job", "Report", "Rng", "Stateful", "UsageError", "assert_exact", "audit",
    "keep_servers",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: a job that wants `Job` alone need not wait for the rest."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = found
    return found
