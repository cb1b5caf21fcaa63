"""The audit as an assertion, for a test suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from resume_audit.auditor import audit
from resume_audit.process.source import Factory
from resume_audit.report import Report


def assert_exact(job: Factory | str | Path, **options: Any) -> Report:
    """Audit a job and raise an AssertionError whose text is the diagnosis unless the verdict is EXACT.

    Takes the options of `audit`; returns the report.
    """
    __tracebackhide__ = True
    report = audit(job, **options)
    if report.verdict != "EXACT":
        raise AssertionError(report.to_markdown())
    return report
