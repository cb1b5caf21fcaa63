"""The jobs in `examples/`: what their docstrings promise."""

from pathlib import Path

import pytest

from resume_audit import audit

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.usefixtures("servers")


class TestPlainScript:
    """A plain script that forgets its scheduler."""

    def test_lacks_its_scheduler(self) -> None:
        """The script's own checkpoint diverges, and the scheduler is what was lost."""
        report = audit(f"{EXAMPLES / 'plain_script_job.py'}:make_job", interrupt=[3]).to_dict()

        [resume] = report["resumes"]
        assert report["verdict"] == "DIVERGES"
        assert resume["diagnosis"]["proven"][0]["path"] == "scheduler.last_epoch"

    def test_is_exact_with_all_its_components(self) -> None:
        """With nothing left out it resumes exactly."""
        assert audit(f"{EXAMPLES / 'plain_script_job.py'}:make_fixed", interrupt=[3]).verdict == "EXACT"


class TestDataLoader:
    """A DataLoader, accumulation, an average and early stopping."""

    def test_is_exact_from_everywhere_that_matters(self) -> None:
        """Inside a window and an epoch, at the end of either, and after the early stop."""
        points = [1, 7, 10, 21, 50]

        report = audit(f"{EXAMPLES / 'dataloader_job.py'}:make_job", interrupt=points)

        assert report.verdict == "EXACT"
        assert [resume["interrupted_after"] for resume in report.to_dict()["resumes"]] == [[p] for p in points]

    def test_needs_each_of_its_components(self) -> None:
        """Inside a window of a later epoch, the lack of any component shows."""
        report = audit(f"{EXAMPLES / 'dataloader_job.py'}:make_job", interrupt=[10], matrix=True).to_dict()

        assert {cell["outcome"] for cell in report["matrix"]} <= {"diverges", "heals"}
        assert len(report["matrix"]) == len(report["components"]) == 8


@pytest.mark.skipif(not (ROOT / "experiment.py").exists(), reason="the fixture comes with the whole project")
class TestExperiment:
    """The experiment's fixture, one micro-step a step."""

    def test_is_exact_before_within_and_after(self) -> None:
        """Before the first micro-step, at a boundary, inside a window, and after the last."""
        report = audit(f"{EXAMPLES / 'experiment_job.py'}:make_job", interrupt=[0, 15, 16, 36])

        assert report.verdict == "EXACT"

    def test_needs_gradients_inside_a_window_only(self) -> None:
        """The lack of gradients is inert at a boundary and diverges inside a window."""
        report = audit(f"{EXAMPLES / 'experiment_job.py'}:make_job", interrupt=[15, 16], matrix=True).to_dict()
        gradients = [cell["outcome"] for cell in report["matrix"] if cell["component"] == "gradients"]
        others = {cell["outcome"] for cell in report["matrix"] if cell["component"] != "gradients"}

        assert gradients == ["inert", "diverges"]
        assert others == {"diverges"}
