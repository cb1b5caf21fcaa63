"""The judge: it passes what was made, finds every change and names its place, and takes whatever is put before it."""

from __future__ import annotations

import copy
import functools
import json
import math
import os
import random
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import experiment
import verify

ROOT = Path(__file__).resolve().parent.parent
EXPECTED, SCHEMAS = ROOT / "expected", ROOT / "schemas"
FILES = tuple(verify.FILES)
ROW_FILES = ("results.csv", "raw-output.txt", "step-traces.json")
JSON_FILES = tuple(name for name in FILES if name.endswith(".json"))

Place = tuple[str | int, ...]
Documents = dict[str, Any]
Edit = Callable[[Documents], object]


def read(directory: Path = EXPECTED) -> Documents:
    """Return the documents of a good set, by file."""
    return {name: verify.parse(name, (directory / name).read_bytes()) for name in FILES}


def csv_text(value: object) -> str:
    """Return a value as results.csv writes it."""
    return "" if value is None else str(value)


def line_text(value: object) -> str:
    """Return a value as raw-output.txt writes it."""
    return f"{value:.9e}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def text_of(name: str, document: Any) -> str:
    """Return the text of a document; written here again, so that a mistake in one writer shows."""
    if name == "results.csv":
        rows = [",".join(verify.COLUMNS), *(",".join(map(csv_text, row.values())) for row in document)]
        return "\n".join(rows) + "\n"
    if name == "raw-output.txt":
        return "".join(" ".join(f"{key}={line_text(item)}" for key, item in row.items()) + "\n" for row in document)
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def write(directory: Path, documents: Documents) -> Path:
    """Write a set."""
    directory.mkdir(exist_ok=True)
    for name, document in documents.items():
        (directory / name).write_text(text_of(name, document), encoding="utf-8")
    return directory


@pytest.fixture(autouse=True, scope="module")
def _one_reader() -> Iterator[None]:
    """Read the schemas and the expected set once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "Reader", functools.lru_cache(maxsize=2)(verify.Reader))
        yield


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A copy of the expected set, to be spoilt."""
    return Path(shutil.copytree(EXPECTED, tmp_path / "results"))


@pytest.fixture(scope="module")
def good() -> Documents:
    """The documents of the expected set; not to be changed."""
    return read()


def judge(directory: Path, expected: Path | None = EXPECTED, **options: Any) -> verify.Verdict:
    """Judge with the project's schemas."""
    return verify.verify(directory, expected, SCHEMAS, **options)


def judge_edited(tmp_path: Path, *edits: Edit, expected: Path | None = EXPECTED, **options: Any) -> verify.Verdict:
    """Judge the expected set after edits of its documents."""
    documents = read()
    for edit in edits:
        edit(documents)
    return judge(write(tmp_path / "edited", documents), expected, **options)


def places(verdict: verify.Verdict) -> list[str]:
    """Return where the differences are."""
    return [f"{difference.file} {difference.place}" for difference in verdict.differences]


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield each value that is no container, with its place."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*place, key))
    else:
        yield place, value


def put(document: Any, place: Place, value: Any) -> None:
    """Set the value at a place."""
    for step in place[:-1]:
        document = document[step]
    document[place[-1]] = value


def changed(value: Any) -> Any:
    """Return another value of the same type, as near as there is one; of none, a number."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return math.nextafter(value, math.inf) if value else 1e-300
    if isinstance(value, str):
        if value in experiment.SCENARIOS:  # to one that is interrupted at the same position
            return {"full_boundary": "omit_rng", "mid_without_gradients": "full_mid_accumulation"}.get(
                value, "mid_without_gradients" if value == "full_mid_accumulation" else "full_boundary"
            )
        return value[:-1] + ("1" if value[-1] == "0" else "0")
    return 1


def line_changed(value: Any) -> Any:
    """Return another value that a line shows, whose floats are rounded."""
    return value * 1.01 if isinstance(value, float) and value else changed(value)


class TestVerdict:
    """The four verdicts, and the status that belongs to each."""

    def test_a_fresh_run_is_verified(self, tmp_path: Path) -> None:
        """What the experiment writes here passes against the expected set, bit for bit where the numbers must be."""
        experiment.run_experiment(tmp_path / "results")

        verdict = judge(tmp_path / "results")

        assert verdict.differences == []
        assert verdict.outcome == ("tolerance" if verdict.other_operations else "bitwise")
        assert verdict.exit_status == 0

    def test_a_set_is_itself(self) -> None:
        """The expected set against itself is verified bitwise, with every value counted."""
        verdict = judge(EXPECTED)

        assert verdict.headline == f"VERIFIED bitwise: 6 files, {sum(1 for _ in leaves(read()))} values"
        assert (verdict.exit_status, verdict.notes) == (0, [])

    def test_other_seeds_and_scenarios_and_settings_are_consistent(self, tmp_path: Path) -> None:
        """A run that nothing is expected of passes on its own, down to one run without any update after the resume."""
        small = experiment.ExperimentConfig(total_optimizer_steps=6, boundary_interrupt_step=6, hidden_dim=4)
        experiment.run_experiment(tmp_path / "one", [5, 3], ["omit_scheduler", "full_boundary", "omit_rng"])
        experiment.run_experiment(tmp_path / "two", [2**32 - 1], ["full_boundary"], small)

        for name in ("one", "two"):
            verdict = judge(tmp_path / name, None)
            assert verdict.differences == []
            assert re.fullmatch(r"CONSISTENT: 6 files, \d+ values", verdict.headline)
            assert verdict.exit_status == 0

    def test_the_report_has_a_line_for_each_file_and_at_most_20_differences(self, tmp_path: Path) -> None:
        """The rest is counted, and the last line counts all."""

        def edit(documents: Documents) -> None:
            for row in documents["results.csv"]:
                row["max_optimizer_tensor_abs_error"] = 1.0

        lines = judge_edited(tmp_path, edit).report().splitlines()

        assert [line.partition(":")[0] for line in lines[:6]] == list(FILES)
        assert lines[0] == "results.csv: 35 differences"
        assert len(lines) == 6 + 20 + 2
        assert (
            lines[6]
            == (
                "results.csv /0/max_optimizer_tensor_abs_error (seed=11 scenario=full_boundary): "
                "is not 0 where the optimizer is exact: expected 0.0, found 1.0"
            )
            or "does not fit" in lines[6]
            or "0 was expected" in lines[6]
        )
        assert lines[-2:] == ["... and 15 more", "FAILED: 35 differences in 1 files"]

    def test_other_versions_and_machines_are_notes(self, tmp_path: Path) -> None:
        """What differs in the environment is named with both values, and is no failure where the bits agree."""

        def edit(documents: Documents) -> None:
            documents["environment.json"] |= {"python": "3.13.1", "numpy": "2.4.7", "machine": "aarch64"}

        verdict = judge_edited(tmp_path, edit)

        assert verdict.outcome == "bitwise"
        assert [note.place for note in verdict.notes] == ["/python", "/numpy", "/machine"]
        assert "note: environment.json /numpy: differs: expected '2.4.6', found '2.4.7'" in verdict.report()


class TestEveryLeaf:
    """No value of any file can change unnoticed."""

    @pytest.mark.parametrize("name", [name for name in FILES if name != "environment.json"])
    def test_a_change_is_named_with_its_place(self, good: Documents, name: str) -> None:
        """Of all values of a file, changed one at a time, each is the one difference found, in its place."""
        document = good[name]
        parts = [((n,), item) for n, item in enumerate(document)] if name in ROW_FILES else [((), document)]
        for at, part in parts:
            for place, value in leaves(part):
                findings = verify.Findings()
                other = copy.deepcopy(part)
                put(other, place, changed(value))
                verify.Comparison(name, findings).rows([other], [part]) if at else verify.Comparison(
                    name, findings
                ).value((), other, part)
                where = verify.pointer((0, *place) if at else place)
                assert [(d.place, d.expected, d.actual) for d in findings.by_place.values()] == [
                    (where, verify.shown(value), verify.shown(changed(value)))
                ]

    @pytest.mark.parametrize("turn", range(23))
    def test_changes_in_the_files_are_named_with_their_places(self, tmp_path: Path, turn: int) -> None:
        """Of all values of five files, a different 23rd changed at each turn, each is named in its place.

        But for seeds and scenarios, by which rows are known: where many of them change, some row is another's double.
        """
        documents = read()
        edited = set()
        for name in FILES:
            if name != "environment.json":
                change = line_changed if name == "raw-output.txt" else changed
                for place, value in list(leaves(documents[name]))[turn::23]:
                    if name in ROW_FILES and place[-1] in {"seed", "scenario"}:
                        continue
                    put(documents[name], place, change(value))
                    edited.add(f"{name} {verify.pointer(place)}")

        verdict = judge(write(tmp_path / "edited", documents))

        assert verdict.outcome == "failed"
        assert edited <= set(places(verdict))

    @pytest.mark.parametrize("name", ROW_FILES)
    @pytest.mark.parametrize("turn", range(7))
    def test_changes_of_seed_and_scenario_are_named_with_their_places(
        self, tmp_path: Path, name: str, turn: int
    ) -> None:
        """Of each row, its scenario, and in the last turn its seed, changed in the files, is named in its place."""
        documents = read()
        key = "scenario" if turn < 6 else "seed"
        rows = range(turn, 35, 7)
        for n in rows:
            put(documents[name], (n, key), changed(documents[name][n][key]))

        verdict = judge(write(tmp_path / "edited", documents))

        assert {f"{name} /{n}/{key}" for n in rows} <= set(places(verdict))

    @pytest.mark.parametrize("place", [place for place, _ in leaves(read()["environment.json"])], ids=str)
    def test_a_change_of_the_environment_is_shown(self, tmp_path: Path, place: Place) -> None:
        """Each value of environment.json, changed, is in the report: as failure, note or other fingerprint."""
        documents = read()
        document = documents["environment.json"]
        put(document, place, changed(dict(leaves(document))[place]))

        verdict = judge(write(tmp_path / "edited", documents))

        assert f"environment.json {verify.pointer(place)}" in verdict.report()
        if place[0] in {"device", "torch_num_threads", "deterministic_algorithms_enabled"}:
            assert verdict.outcome == "failed"
        elif place[0] == "numeric_fingerprint":
            assert verdict.headline.startswith("VERIFIED to rtol 1e-04: 6 files, ")
            assert verdict.headline.endswith(f"(numeric fingerprint differs in: {place[1]})")
        else:
            assert verdict.outcome == "bitwise"

    @pytest.mark.parametrize(("actual", "expected"), [({"a": 1}, {}), ({}, {"a": 1}), ([1], []), ([], [1])])
    def test_keys_and_lengths_are_compared_both_ways(self, actual: Any, expected: Any) -> None:
        """What only one side has is a difference, whichever side it is and whether or not a schema forbids it."""
        findings = verify.Findings()

        verify.Comparison("run-summary.json", findings).value(("x",), actual, expected)

        [difference] = findings.by_place.values()
        assert difference.place == ("/x/a" if isinstance(actual, dict) else "/x/0")
        assert {difference.expected, difference.actual} == {"1", "nothing"}

    @pytest.mark.parametrize("name", JSON_FILES)
    def test_integers_floats_and_booleans_are_kept_apart(self, tmp_path: Path, name: str) -> None:
        """1, 1.0 and true are three values, wherever they stand, even where nothing is expected."""
        documents = read()
        found = [(place, value) for place, value in leaves(documents[name]) if type(value) in {int, float, bool}]
        for place, value in found[:300]:
            put(documents[name], place, {int: float, float: int, bool: int}[type(value)](value))

        named = places(judge(write(tmp_path / "edited", documents), None))

        assert {f"{name} {verify.pointer(place)}" for place, _ in found[:300]} <= set(named)


@pytest.mark.parametrize("name", ROW_FILES)
class TestRows:
    """Rows, lines and traces are known by seed and scenario."""

    def test_a_dropped_one_is_missing(self, tmp_path: Path, name: str) -> None:
        """Its place and run are named, once, with and without an expected set."""
        for expected in (EXPECTED, None):
            verdict = judge_edited(tmp_path, lambda documents: documents[name].pop(9), expected=expected)

            assert f"{name} /9" in places(verdict)
            assert [d.run for d in verdict.differences if d.file == name] == ["seed=17 scenario=omit_rng"]
            assert [d.actual for d in verdict.differences if d.file == name] == ["nothing"]

    def test_a_doubled_one_is_too_much(self, tmp_path: Path, name: str) -> None:
        """The second of the two is named."""
        for expected in (EXPECTED, None):
            verdict = judge_edited(
                tmp_path, lambda documents: documents[name].insert(10, documents[name][9]), expected=expected
            )

            assert [(d.place, d.run) for d in verdict.differences if d.file == name] == [
                ("/10", "seed=17 scenario=omit_rng")
            ]

    def test_a_moved_one_is_out_of_order(self, tmp_path: Path, name: str) -> None:
        """The first place that holds another run than it should is named."""
        for expected in (EXPECTED, None):
            verdict = judge_edited(
                tmp_path, lambda documents: documents[name].insert(3, documents[name].pop(20)), expected=expected
            )

            assert [(d.file, d.place, d.run) for d in verdict.differences] == [
                (name, "/3", "seed=29 scenario=mid_without_gradients")
            ]


def consistently(error: float) -> Edit:
    """Return an edit that gives run 2, seed 11 without the generators' state, another error in all files alike."""

    def edit(documents: Documents) -> None:
        row = documents["results.csv"][2]
        row["max_parameter_abs_error"] = error
        documents["raw-output.txt"][2]["max_param_error"] = float(f"{error:.9e}")
        documents["step-traces.json"][2]["step_trace"][-1]["max_parameter_abs_error"] = error
        errors = [
            other["max_parameter_abs_error"]
            for other in documents["results.csv"]
            if other["scenario"] == row["scenario"]
        ]
        summary = documents["run-summary.json"]["scenario_summary"][row["scenario"]]
        summary["max_parameter_abs_error_min"] = min(errors)
        summary["max_parameter_abs_error_median"] = sorted(errors)[2]
        summary["max_parameter_abs_error_max"] = max(errors)

    return edit


def other_fingerprint(documents: Documents) -> None:
    """Give two operations another fingerprint."""
    documents["environment.json"]["numeric_fingerprint"] |= {"tanh": "0" * 64, "matrix_product": "1" * 64}


class TestTolerance:
    """Bits where the fingerprint says so, a tolerance elsewhere, and discrete facts everywhere."""

    ERROR = read()["results.csv"][2]["max_parameter_abs_error"]

    @pytest.mark.parametrize("factor", [1 - 2e-4, 1 - 0.5e-4, 1 + 0.5e-4, 1 + 2e-4])
    def test_equal_fingerprints_demand_equal_bits(self, tmp_path: Path, factor: float) -> None:
        """A float moved by half the tolerance is as wrong as one moved by twice."""
        verdict = judge_edited(tmp_path, consistently(self.ERROR * factor))

        assert {d.file for d in verdict.differences} == {*ROW_FILES, "run-summary.json"}
        assert judge_edited(tmp_path, consistently(self.ERROR * factor), expected=None).outcome == "consistent"

    @pytest.mark.parametrize("factor", [1 - 0.5e-4, 1 + 0.5e-4])
    def test_different_fingerprints_allow_half_the_tolerance(self, tmp_path: Path, factor: float) -> None:
        """The verdict then says so, and names the operations."""
        verdict = judge_edited(tmp_path, consistently(self.ERROR * factor), other_fingerprint)

        assert verdict.differences == []
        assert re.fullmatch(
            r"VERIFIED to rtol 1e-04: 6 files, \d+ values \(numeric fingerprint differs in: matrix_product, tanh\)",
            verdict.headline,
        )

    @pytest.mark.parametrize("factor", [1 - 2e-4, 1 + 2e-4])
    def test_different_fingerprints_do_not_allow_twice_the_tolerance(self, tmp_path: Path, factor: float) -> None:
        """Each place that holds the float is named."""
        verdict = judge_edited(tmp_path, consistently(self.ERROR * factor), other_fingerprint)

        assert verdict.outcome == "failed"
        assert {
            "results.csv /2/max_parameter_abs_error",
            "raw-output.txt /2/max_param_error",
            "step-traces.json /2/step_trace/6/max_parameter_abs_error",
        } <= set(places(verdict))

    def test_the_tolerance_can_be_set(self, tmp_path: Path) -> None:
        """A wider one admits what the default does not, and the verdict names it."""
        edits = (consistently(self.ERROR * (1 + 2e-4)), other_fingerprint)

        assert judge_edited(tmp_path, *edits, rtol=2.5e-4).headline.startswith("VERIFIED to rtol 2.5e-04:")

    @pytest.mark.parametrize("rtol", [-1e-9, 1.0, math.inf, math.nan])
    def test_a_tolerance_that_admits_anything_is_refused(self, rtol: float) -> None:
        """It lies from 0 to below 1."""
        with pytest.raises(ValueError, match="rtol must be from 0 to below 1"):
            judge(EXPECTED, rtol=rtol)

    def test_another_fingerprint_is_a_failure_where_bits_are_required(self, tmp_path: Path) -> None:
        """`require_bitwise` names the operations, though every result agrees."""
        verdict = judge_edited(tmp_path, other_fingerprint, require_bitwise=True)

        assert sorted(places(verdict)) == [
            "environment.json /numeric_fingerprint/matrix_product",
            "environment.json /numeric_fingerprint/tanh",
        ]
        assert judge(EXPECTED, require_bitwise=True).outcome == "bitwise"

    def test_digests_of_models_are_compared_only_where_bits_are(self, tmp_path: Path) -> None:
        """Other digests pass under another fingerprint, as long as they are equal where the model is exact."""

        def edit(documents: Documents) -> None:
            for row in documents["results.csv"]:
                for name in verify.DIGESTS:
                    row[name] = row[name][::-1]

        assert judge_edited(tmp_path, edit, other_fingerprint).outcome == "tolerance"
        assert len(judge_edited(tmp_path, edit).differences) == 70

    @pytest.mark.parametrize("name", ["max_parameter_abs_error", "max_optimizer_tensor_abs_error"])
    def test_an_expected_zero_stays_zero(self, name: str) -> None:
        """No tolerance is relative to nothing."""
        for actual in (5e-324, -0.0):
            findings = verify.Findings()
            verify.Comparison("results.csv", findings, bitwise=False, rtol=0.5).value((0, name), actual, 0.0)
            assert len(findings.by_place) == 1

    @pytest.mark.parametrize("name", [name for name in FILES if name != "environment.json"])
    def test_discrete_facts_are_equal_everywhere(self, tmp_path: Path, name: str) -> None:
        """Under another fingerprint too, every value but errors and digests of models must be the expected one."""
        documents = read()
        other_fingerprint(documents)
        may = verify.TOLERATED | verify.DIGESTS
        facts = [(p, v) for p, v in leaves(documents[name]) if not may & {step for step in p if type(step) is str}]
        for turn in range(5):
            edited = copy.deepcopy(documents)
            for place, value in facts[turn::5]:
                put(edited[name], place, line_changed(value) if name == "raw-output.txt" else changed(value))
            named = set(places(judge(write(tmp_path / "edited", edited))))
            rows = {place for place in named if re.fullmatch(r"\S+ /\d+", place)}  # another seed is another run
            assert {f"{name} {verify.pointer(p)}" for p, _ in facts[turn::5]} <= named or rows


class TestAgreement:
    """A set that does not tell one story fails without any expected set."""

    def test_a_consistent_edit_still_differs_from_the_expected_set(self, tmp_path: Path) -> None:
        """What was changed in all files alike is found by comparing with what is expected."""
        verdict = judge_edited(tmp_path, consistently(0.07))

        assert judge_edited(tmp_path, consistently(0.07), expected=None).outcome == "consistent"
        assert "results.csv /2/max_parameter_abs_error" in places(verdict)

    def test_a_stale_summary_is_found(self, tmp_path: Path) -> None:
        """A summary of other numbers beside new rows, lines and traces fails on its own."""
        stale = read()["run-summary.json"]

        def keep_summary(documents: Documents) -> None:
            documents["run-summary.json"] = stale

        verdict = judge_edited(tmp_path, consistently(0.01), keep_summary, expected=None)

        assert places(verdict) == [
            f"run-summary.json /scenario_summary/omit_rng/max_parameter_abs_error_{name}" for name in ("min", "median")
        ]

    def test_a_summary_of_another_run_is_found(self, tmp_path: Path) -> None:
        """The summary of fewer seeds, itself in order, does not fit beside the rows of more."""
        experiment.run_experiment(tmp_path / "other", [11, 17, 29, 47])
        stale = json.loads((tmp_path / "other" / "run-summary.json").read_text(encoding="utf-8"))

        def put_in(documents: Documents) -> None:
            documents["run-summary.json"] = stale

        verdict = judge_edited(tmp_path, put_in, expected=None)

        assert {d.file for d in verdict.differences} == {*ROW_FILES, "run-summary.json"}

    @pytest.mark.parametrize(
        ("place", "value", "named"),
        [
            ("results.csv/2/seed", 12, "results.csv /2/seed"),
            ("results.csv/2/exact_resume", True, "results.csv /2/model_exact"),
            ("results.csv/0/exact_resume", False, "results.csv /0/exact_resume"),
            ("results.csv/2/model_exact", True, "results.csv /2/model_exact"),
            ("results.csv/2/optimizer_exact", True, "results.csv /2/max_optimizer_tensor_abs_error"),
            ("results.csv/3/stream_exact", True, "results.csv /3/next_batch_match"),
            ("results.csv/2/next_batch_match", False, "results.csv /2/next_batch_match"),
            ("results.csv/2/learning_rate_error", 0.5, "results.csv /2/learning_rate_error"),
            ("results.csv/2/max_parameter_abs_error", 0.5, "results.csv /2/max_parameter_abs_error"),
            ("results.csv/2/first_divergent_optimizer_step", 7, "results.csv /2/first_divergent_optimizer_step"),
            ("results.csv/2/first_divergent_optimizer_step", None, "results.csv /2/first_divergent_optimizer_step"),
            ("results.csv/2/interrupt_optimizer_step", 4, "results.csv /2/interrupt_optimizer_step"),
            (
                "results.csv/6/interrupt_microstep_in_accumulation",
                2,
                "results.csv /6/interrupt_microstep_in_accumulation",
            ),
            ("results.csv/2/reference_final_model_hash", "0" * 64, "results.csv /2/reference_final_model_hash"),
            ("results.csv/0/resumed_final_model_hash", "0" * 64, "results.csv /0/model_exact"),
            ("raw-output.txt/2/exact", True, "raw-output.txt /2/exact"),
            ("raw-output.txt/2/lr_error", 0.5, "raw-output.txt /2/lr_error"),
            ("step-traces.json/2/step_trace/1/logical_step", 8, "step-traces.json /2/step_trace/1/logical_step"),
            (
                "step-traces.json/2/step_trace/1/model_exact",
                True,
                "step-traces.json /2/step_trace/1/max_parameter_abs_error",
            ),
            ("step-traces.json/0/step_trace/1/model_exact", False, "results.csv /0/first_divergent_optimizer_step"),
            (
                "step-traces.json/2/step_trace/1/actual_learning_rate",
                0.5,
                "step-traces.json /2/step_trace/1/learning_rate_error",
            ),
            (
                "step-traces.json/2/step_trace/1/actual_optimizer_step_counter",
                2,
                "step-traces.json /2/step_trace/1/actual_optimizer_step_counter",
            ),
            ("step-traces.json/2/step_trace/1/last_batch_ids/0", 47, "step-traces.json /2/step_trace/1/batch_match"),
            ("step-traces.json/2/step_trace/1/last_batch_ids/0", 48, "step-traces.json /2/step_trace/1/last_batch_ids"),
            ("step-traces.json/2/step_trace/1/batch_match", False, "step-traces.json /2/step_trace/1/batch_match"),
            ("step-traces.json/2/step_trace", [], "step-traces.json /2/step_trace"),
            ("run-summary.json/run_count", 34, "run-summary.json /run_count"),
            ("run-summary.json/status", "FAIL", "run-summary.json /status"),
            (
                "run-summary.json/acceptance_checks/omit_rng_all_fail",
                False,
                "run-summary.json /acceptance_checks/omit_rng_all_fail",
            ),
            (
                "run-summary.json/scenario_summary/omit_rng/exact_runs",
                1,
                "run-summary.json /scenario_summary/omit_rng/exact_runs",
            ),
            (
                "run-summary.json/scenario_summary/omit_rng/first_divergent_steps/4",
                7,
                "run-summary.json /scenario_summary/omit_rng/first_divergent_steps/4",
            ),
        ],
    )
    def test_an_edit_in_one_file_is_found(self, tmp_path: Path, place: str, value: object, named: str) -> None:
        """Where two files, or two values of one, contradict each other, one of the two is named."""
        steps = [int(step) if step.isdigit() else step for step in place.split("/")]

        verdict = judge_edited(tmp_path, lambda documents: put(documents, tuple(steps), value), expected=None)

        assert named in places(verdict)

    def test_a_batch_of_the_reference_is_one_for_all_runs_of_a_seed(self, tmp_path: Path) -> None:
        """Runs that disagree on the uninterrupted training are found, even where each agrees with itself."""

        def edit(documents: Documents) -> None:
            step = documents["step-traces.json"][2]["step_trace"][0]
            step["last_batch_ids"] = step["expected_last_batch_ids"] = [1, 2, 3, 4]

        assert places(judge_edited(tmp_path, edit, expected=None)) == [
            f"step-traces.json /2/step_trace/0/expected_last_batch_ids/{n}" for n in range(4)
        ]


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "a BOM": lambda data: b"\xef\xbb\xbf" + data,
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "one CR": lambda data: data.replace(b"\n", b"\r\n", 1),
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "Latin-1": lambda data: data.replace(b"s", b"\xe4", 1),
    "a NUL": lambda data: data + b"\0\n",
    "an empty line": lambda data: data + b"\n\n" if data[:1] not in b"[{" else data + b"]\n",
    "a huge integer": lambda data: re.sub(rb"\b(\d+|mod\w+)\b", b"1" * 10_000, data, count=1),
    "brackets": lambda data: b"[" * 100_000 + b"\n",
    "balanced brackets": lambda data: b"[" * 100_000 + b"]" * 100_000 + b"\n",
    "brackets within the limit": lambda data: b"[" * 500 + b"]" * 500 + b"\n",
    "objects": lambda data: b'{"a":' * 100_000 + b"\n",
    "a number": lambda data: b"1\n",
    "null": lambda data: b"null\n",
    "commas": lambda data: b"," * 2_000_000 + b"\n",
    "many values": lambda data: b"[" + b"1," * 200_000 + b"1]\n",
    "many lists": lambda data: b"[" + b"[],{}," * 15_000 + b"1]\n",
    "a NaN": lambda data: b'{"python": NaN}\n',
    "control characters": lambda data: b'{"\\u001b[31m\\ud800\\n": "\\u0000\\udfff"}\n',
}


class TestBrokenFiles:
    """Each is named in one line, and the verdict is FAILED."""

    def check(self, directory: Path, name: str) -> verify.Verdict:
        """Judge; the file is named in lines that can be printed, and the verdict is a failure."""
        verdict = judge(directory)
        lines = verdict.report().splitlines()
        assert verdict.outcome == "failed"
        assert lines[-1].startswith("FAILED: ")
        assert any(line.startswith((f"{name} ", f"{name}: ")) for line in lines[6:-1])
        assert all(line.isprintable() and len(line) < 1000 for line in lines)
        json.loads(verdict.to_json())
        return verdict

    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.parametrize("kind", BROKEN)
    def test_content(self, results: Path, name: str, kind: str) -> None:
        """Whatever stands in a file, reading it ends."""
        data = (results / name).read_bytes()
        broken = BROKEN[kind](data)
        assert broken != data
        (results / name).write_bytes(broken)

        self.check(results, name)

    @pytest.mark.parametrize("name", FILES)
    def test_truncated_at_any_byte(self, results: Path, name: str) -> None:
        """No beginning of a file passes for the whole: cut at 10 places, the last byte and ends of lines among them."""
        data = (results / name).read_bytes()
        ends = [match.end() for match in re.finditer(b"\n", data)][:-1]
        generator = random.Random(name)  # the same places each time
        for size in {
            len(data) - 1,
            ends[0],
            ends[-1],
            *generator.sample(ends, 2),
            *generator.sample(range(len(data)), 5),
        }:
            (results / name).write_bytes(data[:size])
            self.check(results, name)

    @pytest.mark.parametrize("name", JSON_FILES)
    def test_a_key_twice(self, results: Path, name: str) -> None:
        """The object that has it is named by its place."""
        text = (results / name).read_text(encoding="utf-8")
        (results / name).write_text(re.sub(r'(\n *"\w+": [^{}\[\]\n]+,)', r"\1\1", text, count=1), encoding="utf-8")
        if name == "checkpoint-schema.json":
            (results / name).write_text(text.replace("{", '{"not_claimed": [],', 1), encoding="utf-8")

        [difference] = [d for d in self.check(results, name).differences if "twice" in d.reason]

        assert difference.place == ("/0" if name == "step-traces.json" else "")

    @pytest.mark.parametrize(
        "text", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" * 10_000, "0." + "1" * 10_000, '"0.5"', "true"]
    )
    def test_a_number_that_is_none(self, results: Path, text: str) -> None:
        """It is named by its place in JSON and in CSV."""
        trace, csv = results / "step-traces.json", results / "results.csv"
        for file, old, new in (
            (trace, '"max_parameter_abs_error": 0.0,', f'"max_parameter_abs_error": {text},'),
            (csv, ",0.0,0.0,0.0,", f",{text},0.0,0.0,"),
        ):
            file.write_text(file.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")

        verdict = self.check(results, "results.csv")

        place = "step-traces.json /0/step_trace/0/max_parameter_abs_error"
        assert {place, "results.csv /0/max_parameter_abs_error"} <= set(places(verdict))
        [reason] = [d.reason for d in verdict.differences if f"{d.file} {d.place}" == place]
        assert ("cannot be read: " in reason) == (text not in {'"0.5"', "true"})

    @pytest.mark.parametrize(
        ("old", "new", "column"),
        [
            (b",True,", b",1,", "exact_resume"),
            (b",True,", b",true,", "exact_resume"),
            (b"\n11,", b"\n011,", "seed"),
            (b"\n11,", b"\n 11,", "seed"),
            (b"\n11,", b"\n11.0,", "seed"),
            (b"\n11,", "\n\u0661\u0661,".encode(), "seed"),
            (b",0.0,", b",0,", "max_parameter_abs_error"),
            (b",0.0,", b",0.00,", "max_parameter_abs_error"),
            (b",0.0,", b",1e-1,", "max_parameter_abs_error"),
            (b"full_boundary", b'"full_boundary"', "scenario"),
        ],
    )
    def test_a_csv_value_in_another_form(self, results: Path, old: bytes, new: bytes, column: str) -> None:
        """A value has one form."""
        data = (results / "results.csv").read_bytes()
        (results / "results.csv").write_bytes(data.replace(old, new, 1))

        assert f"results.csv /0/{column}" in places(self.check(results, "results.csv"))

    @pytest.mark.parametrize(
        ("old", "new", "place"),
        [
            (b"seed,scenario", b"scenario,seed", ""),
            (b"\n11,", b"\n11,1,", "/0"),
            (b"resumed_final_model_hash\n", b"resumed_final_model_hash,extra\n", ""),
            (b"\n17,", b"\n\n17,", "/7"),
        ],
    )
    def test_a_csv_with_other_columns(self, results: Path, old: bytes, new: bytes, place: str) -> None:
        """A stray column, another order of columns or an empty line is named."""
        data = (results / "results.csv").read_bytes()
        (results / "results.csv").write_bytes(data.replace(old, new, 1))

        assert f"results.csv {place}" in places(self.check(results, "results.csv"))

    @pytest.mark.parametrize(
        ("old", "new"),
        [(b"exact=true", b"exact=True"), (b"seed=", b"Seed="), (b" exact", b"  exact"), (b"e+00", b"e+0")],
    )
    def test_a_line_in_another_form(self, results: Path, old: bytes, new: bytes) -> None:
        """A line has one form."""
        data = (results / "raw-output.txt").read_bytes()
        (results / "raw-output.txt").write_bytes(data.replace(old, new, 1))

        self.check(results, "raw-output.txt")

    def spoil(self, path: Path, kind: str) -> None:
        """Put something that is no regular file in a file's place."""
        data = path.read_bytes()
        path.unlink()
        if kind == "a directory":
            path.mkdir()
        elif kind == "a named pipe":
            os.mkfifo(path)
        elif kind == "a dangling link":
            path.symlink_to("nowhere")
        elif kind == "a link to itself":
            path.symlink_to(path.name)
        elif kind == "a link to a good file":
            path.with_name("aside").write_bytes(data)
            path.symlink_to("aside")
        elif kind == "a device":
            path.symlink_to("/dev/zero")
        elif kind == "a socket":
            here = Path.cwd()
            os.chdir(path.parent)  # the names of sockets are short
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path.name)
            os.chdir(here)
        elif kind == "2 GB":
            with path.open("wb") as file:
                file.truncate(2 * 10**9)

    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.parametrize(
        "kind",
        [
            *("nothing", "a directory", "a named pipe", "a dangling link", "a link to itself", "a link to a good file"),
            *("a device", "a socket", "2 GB"),
        ],
    )
    def test_something_else_in_a_files_place(self, results: Path, name: str, kind: str) -> None:
        """It is neither waited for nor read, and named for what it is."""
        self.spoil(results / name, kind)

        reasons = [d.reason for d in self.check(results, name).differences if d.file == name]

        named = {
            "nothing": "is missing",
            "2 GB": f"is larger than {verify.FILES[name]} bytes",
            "a device": "a symbolic link",
        }
        assert named.get(kind, "a symbolic link" if "link" in kind else kind) in reasons[0]

    def test_a_file_that_may_not_be_read(self, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The system's reason is given."""
        refused = PermissionError(13, "Permission denied")
        monkeypatch.setattr(os, "open", lambda *args, **options: (_ for _ in ()).throw(refused))
        findings = verify.Findings()

        with pytest.raises(verify.FormError, match="cannot be read: Permission denied"):
            verify.read_bytes(results / "results.csv", 100_000)
        assert findings.by_place == {}

    @pytest.mark.parametrize("name", [b"notes.txt", b".hidden", b"results.csv~", b"\xff\x1b[31m\nnew line"])
    def test_an_extra_file(self, results: Path, name: bytes) -> None:
        """It is named, whatever its name is made of."""
        (results / os.fsdecode(name)).write_bytes(b"")

        verdict = judge(results)

        assert [d.reason for d in verdict.differences] == ["is not one of the six files"]
        assert all(line.isprintable() for line in verdict.report().splitlines())

    def test_very_many_violations(self, results: Path) -> None:
        """They are counted to a bound, and the verdict comes soon."""
        rows = [{"seed": 0, "scenario": 0, "step_trace": 0}] * 50_000
        (results / "step-traces.json").write_text(json.dumps(rows) + "\n", encoding="utf-8")

        verdict = self.check(results, "step-traces.json")

        assert any("more than 1000 differences" in d.reason for d in verdict.differences)
        assert len(verdict.differences) == 1001


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=8,
)


@st.composite
def edits(draw: st.DrawFn) -> Documents:
    """Return the expected set with any JSON value in any place of one of its JSON files."""
    documents = read()
    name = draw(st.sampled_from(JSON_FILES))
    steps: list[str | int] = []
    at = documents[name]
    while isinstance(at, dict | list) and at and (not steps or draw(st.booleans())):
        step = draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        steps.append(step)
        at = at[step]
    documents[name] = copy.deepcopy(documents[name])
    value = draw(json_values)
    if draw(st.integers(0, 9)) == 0:
        documents[name] = value
    else:
        put(documents[name], tuple(steps), value)
    return documents


def shuffled(value: Any, generator: random.Random) -> Any:
    """Return a copy of a document with the keys of every object in another order."""
    if isinstance(value, list):
        return [shuffled(item, generator) for item in value]
    if isinstance(value, dict):
        return {key: shuffled(value[key], generator) for key in generator.sample(sorted(value), len(value))}
    return value


SAME_DIRECTORY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)


class TestProperties:
    @SAME_DIRECTORY
    @given(documents=edits(), expected=st.sampled_from([EXPECTED, None]))
    def test_any_json_value_in_any_place(self, tmp_path: Path, documents: Documents, expected: Path | None) -> None:
        """There is a verdict, and a report that can be printed."""
        verdict = judge(write(tmp_path / "edited", documents), expected)

        assert verdict.report().splitlines()[-1] == verdict.headline
        assert json.loads(verdict.to_json())["verdict"] == verdict.headline

    @SAME_DIRECTORY
    @given(data=st.binary(max_size=200), name=st.sampled_from(FILES), at=st.integers(0, 5000))
    def test_any_bytes_in_any_place(self, tmp_path: Path, data: bytes, name: str, at: int) -> None:
        """There is a verdict, whatever a file is overwritten with."""
        directory = write(tmp_path / "edited", read())
        old = (EXPECTED / name).read_bytes()
        (directory / name).write_bytes(old[:at] + data + old[at + len(data) :])

        assert judge(directory).headline

    @settings(SAME_DIRECTORY, max_examples=8)
    @given(seeds=st.lists(st.integers(0, 2**32 - 1), min_size=5, max_size=5, unique=True), edit=st.booleans())
    def test_a_set_is_verified_against_itself(self, tmp_path: Path, seeds: Sequence[int], edit: bool) -> None:
        """Whatever its seeds are, and under any fingerprint: nothing differs from itself."""
        documents = read()
        other = dict(zip(experiment.SEEDS, seeds, strict=True))
        for name in ROW_FILES:
            for row in documents[name]:
                row["seed"] = other[row["seed"]]
        documents["run-summary.json"]["seeds"] = seeds
        if edit:
            other_fingerprint(documents)
        directory = write(tmp_path / "edited", documents)

        assert judge(directory, directory, require_bitwise=True).outcome == "bitwise"

    @settings(SAME_DIRECTORY, max_examples=8)
    @given(seed=st.integers(0, 10**6), spoil=st.booleans())
    def test_the_order_of_keys_does_not_matter(self, tmp_path: Path, seed: int, spoil: bool) -> None:
        """JSON objects whose keys stand in another order get the same verdict, good or bad."""
        generator = random.Random(seed)
        straight = read()
        if spoil:
            for name in JSON_FILES:
                found = list(leaves(straight[name]))
                put(straight[name], generator.choice(found)[0], 7)
        other = {
            name: shuffled(document, generator) if name in JSON_FILES else document
            for name, document in straight.items()
        }

        verdict, wanted = judge(write(tmp_path / "other", other)), judge(write(tmp_path / "straight", straight))

        assert (verdict.headline, sorted(places(verdict))) == (wanted.headline, sorted(places(wanted)))


class TestCannotJudge:
    """Where there is nothing to judge, or nothing to judge by, the status is 2."""

    @pytest.mark.parametrize("name", ["nowhere", "file", "", "a\0b"])
    def test_no_directory(self, tmp_path: Path, name: str) -> None:
        """What is no directory is named."""
        (tmp_path / "file").write_text("", encoding="utf-8")
        directory = tmp_path / name if name else tmp_path / "file" / "x"

        with pytest.raises(verify.CannotJudgeError, match="cannot read the directory"):
            judge(directory)
        with pytest.raises(verify.CannotJudgeError, match="cannot read the directory"):
            judge(EXPECTED, directory)

    @pytest.mark.parametrize("name", FILES)
    def test_a_broken_expected_set(self, results: Path, name: str) -> None:
        """Nothing is judged by a file that is missing or malformed."""
        (results / name).write_bytes(b"{}\n")

        with pytest.raises(verify.CannotJudgeError, match=rf"expected set .* is broken: {name}"):
            judge(EXPECTED, results)

    @pytest.mark.parametrize(
        "text",
        [
            None,
            "",
            "{",
            "[" * 100_000,
            "[]",
            "NaN",
            '{"type": "anything"}',
            '{"type": 12}',
            '{"pattern": "("}',
            '{"$ref": "nowhere.json"}',
            '{"$ref": "#/$defs/nothing"}',
            '{"$ref": "#"}',
            '{"$ref": "http://localhost:9/schema.json"}',
            "true",
            "{}",
        ],
    )
    @pytest.mark.parametrize("name", ["results.schema.json", "environment.schema.json"])
    def test_a_broken_schema(self, tmp_path: Path, name: str, text: str | None) -> None:
        """A schema that is missing, no schema, or refers to nothing is named; one that admits all is not believed."""
        schemas = Path(shutil.copytree(SCHEMAS, tmp_path / "schemas"))
        (schemas / name).unlink()
        if text is not None:
            (schemas / name).write_text(text + "\n", encoding="utf-8")

        if text in {"true", "{}"}:
            assert verify.verify(EXPECTED, EXPECTED, schemas).outcome == "bitwise"
        else:
            with pytest.raises(verify.CannotJudgeError, match=re.escape(name)):
                verify.verify(EXPECTED, EXPECTED, schemas)

    def test_schemas_that_admit_what_has_no_meaning(self, results: Path, tmp_path: Path) -> None:
        """Behind a schema without demands, a set without sense is no crash."""
        schemas = Path(shutil.copytree(SCHEMAS, tmp_path / "schemas"))
        for path in schemas.iterdir():
            path.write_text("{}\n", encoding="utf-8")
        for document in ("[]", "{}", "1", '{"seeds": [1], "scenarios": 5}', '{"seeds": [{}], "scenarios": [[]]}'):
            (results / "run-summary.json").write_text(document + "\n", encoding="utf-8")
            with pytest.raises(verify.CannotJudgeError, match="admit what has no meaning"):
                verify.verify(results, None, schemas)


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the judge as a user would."""
    command = [sys.executable, str(ROOT / "verify.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)


class TestCommandLine:
    def test_success(self, tmp_path: Path) -> None:
        """Status 0, a line for each file and the verdict, from any directory and under any locale."""
        done = run(EXPECTED, cwd=tmp_path, env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"})

        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1].startswith("VERIFIED bitwise: 6 files, ")

    def test_failure(self, results: Path) -> None:
        """Status 1, also where a name is beyond the terminal's encoding."""
        (results / "größe").write_text("", encoding="utf-8")

        done = run(results, env={"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "ascii"})

        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.splitlines()[-2:] == [
            r"gr\xf6\xdfe: is not one of the six files",
            "FAILED: 1 differences in 1 files",
        ]

    def test_json(self, results: Path) -> None:
        """The same verdict as one JSON object."""
        (results / "results.csv").unlink()

        done = run(results, "--json")

        said = json.loads(done.stdout)
        assert done.returncode == 1
        assert (said["verdict"], said["passed"], said["outcome"]) == (
            "FAILED: 1 differences in 1 files",
            False,
            "failed",
        )
        assert said["differences"][0] | {"run": None} == said["differences"][0]
        assert (said["differences"][0]["file"], said["differences"][0]["reason"]) == ("results.csv", "is missing")

    @pytest.mark.parametrize(
        ("arguments", "culprit"),
        [
            ([], "RESULTS_DIR"),
            (["nowhere"], "nowhere"),
            (["nowhere\n\x1b[31m"], "nowhere"),
            ([EXPECTED, "--expected", "nowhere"], "nowhere"),
            ([EXPECTED, "--schemas", "nowhere"], "nowhere"),
            ([EXPECTED, "--rtol", "nan"], "nan"),
            ([EXPECTED, "--rtol", "-1"], "-1"),
            ([EXPECTED, "--rtol", "1"], "1"),
            ([EXPECTED, "--rtol", "little"], "little"),
            ([EXPECTED, "--no-expected", "--expected", EXPECTED], "--expected"),
            ([EXPECTED, "--no-expected", "--require-bitwise"], "--require-bitwise"),
            ([EXPECTED, "--exp", EXPECTED], "--exp"),
        ],
    )
    def test_bad_input(self, arguments: Sequence[object], culprit: str, capsys: pytest.CaptureFixture[str]) -> None:
        """Status 2, and one line on standard error that names the culprit."""
        try:
            status: object = verify.main([str(argument) for argument in arguments])
        except SystemExit as error:
            status = error.code

        out, err = capsys.readouterr()
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith("verify.py: error: ")
        assert culprit in err

    def test_a_full_disk(self) -> None:
        """Status 2, and one line on standard error."""
        with Path("/dev/full").open("w", encoding="utf-8") as full:
            command = [sys.executable, str(ROOT / "verify.py"), str(EXPECTED)]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)

        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "cannot write to standard output" in done.stderr

    def test_the_judge_is_independent(self) -> None:
        """It judges in a process where torch, NumPy and the experiment cannot be imported."""
        program = (
            "import sys\n"
            "for name in ('torch', 'numpy', 'experiment'): sys.modules[name] = None\n"
            "import verify\n"
            f"print(verify.verify({str(EXPECTED)!r}, {str(EXPECTED)!r}, {str(SCHEMAS)!r}).headline)\n"
        )

        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
        )

        assert done.stdout.startswith("VERIFIED bitwise: 6 files, ")
