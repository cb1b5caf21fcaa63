"""What the audit says of public resume bugs, and of further ways to lose state.

`rNN_*.py` are the public reports, `extra_*.py` jobs that lose state in other places. Each file has a broken job, a
mended one, where to interrupt it, and the names by which a reader would know what was lost.
"""

import functools
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import html5lib
import jsonschema
import pytest

import resume_audit
from resume_audit.render import to_html, to_markdown
from resume_audit.render.markdown import code
from resume_audit.render.words import LONGEST_LIST, patterns

HERE = Path(__file__).parent
SCHEMA = jsonschema.Draft202012Validator(
    json.loads((HERE.parents[1] / "schemas" / "audit.schema.json").read_text(encoding="utf-8"))
)
REPORTED = sorted(path.stem for path in HERE.glob("r[0-9]*.py"))
EXTRA = sorted(path.stem for path in HERE.glob("extra_*.py"))

pytestmark = pytest.mark.usefixtures("servers")


@functools.cache
def module(name: str) -> ModuleType:
    """Return a file of the gallery, imported to read its constants."""
    spec = importlib.util.spec_from_file_location(f"gallery_{name}", HERE / f"{name}.py")
    assert spec
    assert spec.loader
    imported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(imported)
    return imported


@functools.cache
def audited(name: str, factory: str) -> dict[str, Any]:
    """Return the report on one job; every test looks at the same."""
    return resume_audit.audit(f"{HERE / name}.py:{factory}").to_dict()


def paths(name: str, *kinds: str) -> list[str]:
    """Return the paths of some kinds that the report on a broken job names."""
    diagnoses = [resume["diagnosis"] for resume in audited(name, "make_job")["resumes"] if resume["diagnosis"]]
    return [entry["path"] for diagnosis in diagnoses for kind in kinds for entry in diagnosis[kind]]


def hit(name: str, *kinds: str) -> bool:
    """Tell whether any of the right answers is part of one of these paths."""
    return any(lost in path for lost in module(name).LOST for path in paths(name, *kinds))


def named(name: str) -> bool:
    """Tell whether the report names what was lost."""
    return hit(name, "proven", "suspects", "out_of_reach")


def proven(name: str) -> bool:
    """Tell whether a proof names what was lost."""
    return hit(name, "proven")


# What no proof reaches, and why: the report names it and says that it is not proven.
BEYOND_PROOF = {
    "extra_batch_ahead_in_future": "a future belongs to the thread that fills it",
    "extra_chained_slices": "a generator expression inside iterators made in C",
    "extra_interleaved_streams": "two generators are suspended side by side",
    "extra_loss_not_yet_backward": "a tensor's graph cannot be carried into another process",
    "extra_prefetching_thread": "a thread",
    "extra_text_file_position": "the position of a file",
    "extra_worker_processes": "worker processes",
}

further = pytest.mark.gallery  # they take minutes and stay out of `make test`
every_job = pytest.mark.parametrize("name", [*REPORTED, *(pytest.param(name, marks=further) for name in EXTRA)])


class TestVerdict:
    """Broken and mended jobs."""

    @every_job
    def test_broken_job_does_not_pass(self, name: str) -> None:
        """A job that loses state diverges, or its error is told."""
        assert audited(name, "make_job")["verdict"] in ("DIVERGES", "ERROR")

    @every_job
    def test_mended_job_is_exact(self, name: str) -> None:
        """The same job with its state saved is exact: the audit raises no false alarm."""
        assert audited(name, "make_fixed")["verdict"] == "EXACT"

    @every_job
    def test_what_is_not_proven_says_why(self, name: str) -> None:
        """A diagnosis has a proof or the reason why it has none."""
        diagnoses = [r["diagnosis"] for r in audited(name, "make_job")["resumes"] if r["verdict"] == "DIVERGES"]

        assert diagnoses
        assert all(d and bool(d["proven"]) != bool(d["unproven"]) for d in diagnoses)


class TestReport:
    """Real reports, in every form."""

    @every_job
    @pytest.mark.parametrize("factory", ["make_job", "make_fixed"])
    def test_keeps_to_the_schema(self, name: str, factory: str) -> None:
        """What the audit tells is shaped as `schemas/audit.schema.json` says."""
        SCHEMA.validate(audited(name, factory))

    @every_job
    def test_makes_a_valid_page(self, name: str) -> None:
        """A parser that forgives nothing takes the page."""
        html5lib.HTMLParser(strict=True).parse(to_html(audited(name, "make_job")))

    @every_job
    def test_says_what_was_lost_in_a_sentence(self, name: str) -> None:
        """The Markdown has each proven path, or the name of its family."""
        text = to_markdown(audited(name, "make_job"))

        for resume in audited(name, "make_job")["resumes"]:
            proven = resume["diagnosis"]["proven"] if resume["diagnosis"] else []
            assert all(code(told) in text for told in patterns(entry["path"] for entry in proven)[:LONGEST_LIST])


class TestWhatWasLost:
    """Names of the lost state, judged by a reader's words for it."""

    def test_is_named_in_nearly_every_report(self) -> None:
        """Of the 30 public reports at least 27 are told by name."""
        assert len(REPORTED) == 30
        unnamed = [name for name in REPORTED if not named(name)]
        assert len(unnamed) <= 3, unnamed

    def test_is_proven_in_most_reports(self) -> None:
        """Of the 30 public reports at least 21 are proven by restoring what was lost."""
        unproven = [name for name in REPORTED if not proven(name)]
        assert len(unproven) <= 9, unproven

    @further
    @pytest.mark.parametrize("name", EXTRA)
    def test_is_named_wherever_state_can_hide(self, name: str) -> None:
        """What the further jobs lose is told by name."""
        assert named(name), paths(name, "proven", "suspects", "out_of_reach")

    @further
    @pytest.mark.parametrize("name", [name for name in EXTRA if name not in BEYOND_PROOF])
    def test_is_proven_wherever_state_can_hide(self, name: str) -> None:
        """What the further jobs lose is proven."""
        assert proven(name), paths(name, "suspects", "out_of_reach")
