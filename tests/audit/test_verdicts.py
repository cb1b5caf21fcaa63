"""Every verdict, with its evidence, through the Python interface."""

import json
from pathlib import Path
from typing import Any

import jobs
import jsonschema
import pytest

import resume_audit
from resume_audit import Report

pytestmark = pytest.mark.usefixtures("servers")

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "audit.schema.json").read_text(encoding="utf-8"))
JOBS = Path(jobs.__file__)


def audit(name: str, **options: Any) -> Report:
    """Return the report on a job of `jobs`, held against the schema."""
    report = resume_audit.audit(JOBS, factory=name, **options)
    jsonschema.validate(report.to_dict(), SCHEMA)
    return report


class TestExact:
    """What agrees."""

    def test_a_complete_checkpoint_is_exact_at_every_point(self) -> None:
        """A job that saves all it needs is EXACT before the first step, after the last, and everywhere between."""
        report = audit("exact", every=True)

        assert report.verdict == "EXACT"
        assert [resume["interrupted_after"] for resume in report.data["resumes"]] == [[k] for k in range(7)]

    @pytest.mark.parametrize("name", ["awkward_metrics", "state_within_itself"])
    def test_what_is_odd_but_resumes_is_exact(self, name: str) -> None:
        """Metrics that are no numbers and a state that holds itself are compared like any other."""
        assert audit(name).verdict == "EXACT"

    def test_a_chain_interrupts_the_resumed_run_again(self) -> None:
        """With chain every prefix of the points is a run of its own."""
        report = audit("exact", interrupt=[1, 3, 4], chain=True)

        chained = [resume["interrupted_after"] for resume in report.data["resumes"]]
        assert chained == [[1], [3], [4], [1, 3], [1, 3, 4]]
        assert report.verdict == "EXACT"

    def test_points_that_the_module_asks_for_are_taken(self) -> None:
        """Where nobody says where to interrupt, the module's own INTERRUPT does."""
        report = resume_audit.audit(jobs.exact, steps=12, diagnose=False, interrupt=None)

        assert report.data["interruptions"] == [{"after": 2, "why": "requested"}]

    def test_a_fresh_interpreter_agrees_with_a_fork(self) -> None:
        """Whole new interpreters say what forked processes say."""
        assert audit("bare", fresh=True).verdict == "EXACT"


class TestDiverges:
    """What differs."""

    def test_the_lost_count_is_proven(self) -> None:
        """A counter outside the checkpoint is named with both values, and alone."""
        report = audit("loses_count")

        (resume,) = report.data["resumes"]
        (proven,) = resume["diagnosis"]["proven"]
        assert report.verdict == "DIVERGES"
        assert (proven["path"], proven["uninterrupted"], proven["resumed"]) == ("tally.count", "2", "0")
        assert resume["first_divergence"]["step"] == 3
        assert resume["drift"]["parameters"] > 0

    def test_all_that_is_lost_together_is_proven_together(self) -> None:
        """Six counts that the run needs are proven as one set, none of which can be left out."""
        (resume,) = audit("loses_counts").data["resumes"]

        assert len(resume["diagnosis"]["proven"]) == 6
        assert resume["diagnosis"]["minimal"]

    def test_a_search_that_is_cut_short_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A set that is proven but may hold more than is needed does not claim to be minimal, in data or in words."""
        monkeypatch.setattr("resume_audit.diagnosis.BUDGET", 3)

        report = audit("loses_counts")

        (resume,) = report.data["resumes"]
        assert resume["diagnosis"]["proven"]
        assert not resume["diagnosis"]["minimal"]
        assert "cut short" in report.to_markdown()
        assert "No proper part" not in report.to_markdown()

    def test_the_order_that_an_ordered_dict_was_given_is_proven(self) -> None:
        """Where entries were moved, the order in which they stand is restored, not that in which they came."""
        (resume,) = audit("moved_to_end").data["resumes"]

        assert [entry["path"] for entry in resume["diagnosis"]["proven"]] == ["tally.cache"]

    def test_the_order_of_a_set_is_told_though_it_cannot_be_set(self) -> None:
        """A set that iterates in another order is a suspect, and out of reach, where nothing else differs."""
        (resume,) = audit("set_made_anew").data["resumes"]

        diagnosis = resume["diagnosis"]
        assert [entry["path"] for entry in diagnosis["suspects"]] == ["tally.held"]
        assert diagnosis["out_of_reach"] == [{"path": "tally.held", "why": "the order of a set cannot be set."}]

    def test_a_resume_of_a_wrong_run_is_not_blamed_on_its_load(self) -> None:
        """In a chain the first loss is diagnosed; what differs from then on was not lost by the second load."""
        first, _, both = audit("loses_in_a_chain", interrupt=[2, 4], chain=True).data["resumes"]

        assert [entry["path"] for entry in first["diagnosis"]["proven"]] == ["tally.other"]
        assert both["diagnosis"]["proven"] == []
        assert "no longer the uninterrupted run" in both["diagnosis"]["unproven"]

    def test_what_a_lost_switch_undoes_is_told_beside_it(self) -> None:
        """A flag that was lost is proven; the saved count that the next step begins again for it is named too."""
        report = audit("begins_again")

        (resume,) = report.data["resumes"]
        assert [entry["path"] for entry in resume["diagnosis"]["proven"]] == ["tally.begun"]
        (undone,) = [entry for entry in resume["diagnosis"]["suspects"] if entry["path"] == "tally.count"]
        assert (undone["uninterrupted"], undone["resumed"], undone["where"]) == ("3", "1", "step 3")
        assert "Undone in consequence" in report.to_markdown()

    def test_what_a_lost_count_entails_is_not_told(self) -> None:
        """Where no switch was lost nothing is said of the steps after it: all that is wrong there follows."""
        (resume,) = audit("loses_count").data["resumes"]

        assert resume["diagnosis"]["suspects"] == []

    def test_gradients_that_are_thrown_away_are_not_suspected(self) -> None:
        """Where the lost thing is out of reach, gradients that the next update drops do not stand in for it."""
        (resume,) = audit("reads_on").data["resumes"]

        diagnosis = resume["diagnosis"]
        assert (diagnosis["proven"], diagnosis["suspects"]) == ([], [])
        assert "model.weight.grad" in diagnosis["without_effect"]
        assert [entry["path"] for entry in diagnosis["out_of_reach"]] == ["numbers"]
        assert "out of reach" in diagnosis["unproven"]

    def test_a_tensor_whose_graph_stays_behind_is_told(self) -> None:
        """A loss that waits for its backward pass cannot be restored by its value: that is told, and why."""
        (resume,) = audit("loss_held").data["resumes"]

        diagnosis = resume["diagnosis"]
        assert "held" in [entry["path"] for entry in diagnosis["suspects"]]
        assert {"path": "held[0]", "why": "the graph by which it was computed cannot be carried into another run."} in (
            diagnosis["out_of_reach"]
        )
        assert "grad_fn" in diagnosis["unproven"]

    def test_a_difference_that_passes_is_told_as_healed(self) -> None:
        """A metric that is wrong for one step diverges, and heals after it."""
        (resume,) = audit("heals").data["resumes"]

        assert resume["verdict"] == "DIVERGES"
        assert resume["healed_after"] == 3
        assert [entry["path"] for entry in resume["diagnosis"]["proven"]] == ["tally.extra"]

    def test_a_save_that_disturbs_is_told_with_what_it_changes(self) -> None:
        """Saving that moves a generator is no resume of the uninterrupted run, though loading is right."""
        (resume,) = audit("save_disturbs").data["resumes"]

        assert resume["saving_disturbs"]
        assert resume["verdict"] == "DIVERGES"
        assert "rng[torch.default_generator]" in [entry["path"] for entry in resume["diagnosis"]["suspects"]]

    @pytest.mark.parametrize(
        ("name", "what"),
        [
            ("nothing_to_compare", "nothing_to_compare"),
            ("load_does_nothing", "nothing_loaded"),
        ],
    )
    def test_an_agreement_that_proves_nothing_is_no_pass(self, name: str, what: str) -> None:
        """Nothing to compare, nothing loaded: each is told as such and is not EXACT."""
        report = audit(name)

        (resume,) = report.data["resumes"]
        assert what in [reason["what"] for reason in resume["vacuous"]]
        assert report.verdict == "DIVERGES"


class TestAbstain:
    """What does not repeat itself."""

    @pytest.mark.parametrize(
        ("name", "outcome", "path"),
        [
            ("unseeded", "metrics.noise", "noise"),
            ("by_hash", "metrics.first", "names"),
            ("clock", "metrics.started", "tally.started"),
            ("looked_at", "metrics.loss", "tally.count"),
            ("clock_between", "tally", "tally.at"),
        ],
    )
    def test_the_state_that_differs_first_is_named(self, name: str, outcome: str, path: str) -> None:
        """An unseeded generator, the order of a set, the clock (between steps too), a state that reading changes."""
        report = audit(name)

        found = report.data["baseline"]["first_difference"]
        assert report.verdict == "ABSTAIN"
        assert outcome in found["outcomes"]
        assert path in found["state"]


@pytest.mark.parametrize(("side_by_side", "threads"), [(1, 6), (2, 3), (4, 1), (12, 1)])
def test_runs_side_by_side_share_the_processors(
    side_by_side: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run lets torch use the processors divided by the number of runs, and at least one."""
    monkeypatch.setattr("resume_audit.auditor.processors", lambda: 6)

    error = audit("tells_threads", jobs=side_by_side).data["error"]

    assert error["message"] == f"{threads} threads"


class TestError:
    """What cannot be audited."""

    @pytest.mark.parametrize(
        ("name", "phase", "kind", "step"),
        [
            ("factory_raises", "factory", "RuntimeError", None),
            ("no_job", "factory", "TypeError", None),
            ("no_seed", "factory", "TypeError", None),
            ("no_state_dict", "factory", "TypeError", None),
            ("not_there", "import", "AttributeError", None),
            ("step_raises", "baseline", "ArithmeticError", 3),
            ("step_is_killed", "baseline", "Killed", 3),
            ("step_exits", "baseline", "Exited", 3),
            ("step_asks_to_exit", "baseline", "SystemExit", 3),
            ("not_a_dict", "factory", "TypeError", None),
            ("numbered_parts", "factory", "TypeError", None),
            ("metrics_in_the_way", "factory", "ValueError", None),
            ("numbered_metrics", "baseline", "TypeError", 1),
            ("unreadable_part", "baseline", "LookupError", 0),
            ("save_raises", "save", "OSError", 2),
            ("save_writes_nothing", "save", "NothingSaved", 2),
            ("load_reads_another", "load", "ReadsAnotherFile", 2),
            ("load_raises", "load", "FileNotFoundError", 2),
        ],
    )
    def test_phase_step_and_exception_are_told(self, name: str, phase: str, kind: str, step: int | None) -> None:
        """Whatever the job raises is told with the phase and the step, and no line of it is this package's own."""
        report = audit(name)

        error = report.data["error"]
        assert report.verdict == "ERROR"
        assert (error["phase"], error["type"], error["step"]) == (phase, kind, step)
        assert "resume_audit/run.py" not in error["traceback"]

    def test_a_message_that_is_no_text_is_told(self) -> None:
        """An error with half a surrogate pair in its message makes a report that can be written to a file and read."""
        report = audit("odd_message")

        assert "caf\udce9" in json.loads(report.to_json().encode())["error"]["message"]
        assert "caf" in report.to_html().encode().decode()

    def test_a_run_that_never_ends_is_told_as_hung(self) -> None:
        """A step that does not return is told after the timeout, with its number."""
        error = audit("step_hangs", timeout=1.5).data["error"]

        assert (error["type"], error["phase"], error["step"]) == ("Timeout", "baseline", 3)

    def test_a_state_that_cannot_be_serialised_is_the_saves_error(self) -> None:
        """A function in a state is found when it is saved."""
        assert audit("unserialisable").data["error"]["phase"] == "save"

    def test_a_point_outside_the_run_is_wrong_usage(self) -> None:
        """An interruption point that the run does not have is named."""
        error = audit("exact", interrupt=[7]).data["error"]

        assert error["phase"] == "usage"
        assert "7" in error["message"]


class TestMatrix:
    """Resumes without one component."""

    def test_each_cell_says_what_an_omission_does(self) -> None:
        """What is needed diverges at a step, what nobody uses is inert."""
        report = audit("inert", matrix=True)

        cells = {cell["component"]: cell for cell in report.data["matrix"]}
        assert {name: cell["outcome"] for name, cell in cells.items() if name in ("tally", "model")} == {
            "tally": "diverges",
            "model": "diverges",
        }
        assert cells["tally"]["first_step"] == 3
        assert cells["idle"]["outcome"] == "inert"
