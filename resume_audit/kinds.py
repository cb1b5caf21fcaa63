"""What sort of state a suspect is: the advice that goes with a finding hangs on it."""

from __future__ import annotations

from resume_audit.graph.difference import Suspect
from resume_audit.render.advice import classify


def kind_of(suspect: Suspect) -> str:
    """One of the kinds of `schemas/audit.schema.json`."""
    if suspect.kind in ("alias", "storage"):
        return "aliasing"
    if suspect.sort == "rng":
        return "generator"
    held = suspect.label is not None and suspect.label.kind in ("local", "contents")
    return classify(suspect.path, default="variable" if held else "other")
