"""What a diagnosis says where it cannot be made."""

from pathlib import Path
from typing import Any

from resume_audit.diagnosis import Case, Diagnosis
from resume_audit.process.failure import Failure
from resume_audit.process.launcher import RunFailed


def test_a_run_that_cannot_be_looked_into_is_told_with_the_reason(tmp_path: Path) -> None:
    """The exception that ended the look into the run stands in the sentence that says why nothing is proven."""

    def start(task: Any) -> Any:
        raise RunFailed(Failure("diagnosis", 2, "MemoryError", "no room for the picture"))

    told = Diagnosis(Case(0, 2, tmp_path / "saved", 4, 3, {}, {}, tmp_path), start).make()

    assert told["proven"] == []
    assert told["unproven"] == "looking into the run failed (MemoryError: no room for the picture)."
