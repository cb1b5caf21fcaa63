"""Whatever a job is made of, the audit names and proves exactly the piece that its checkpoint lacks."""

from functools import partial

import pytest
import random_jobs
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import resume_audit

pytestmark = pytest.mark.usefixtures("servers")

PIECES = st.lists(st.integers(0, len(random_jobs.KINDS) - 1), min_size=1, max_size=5).map(tuple)


@given(kinds=PIECES, data=st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_the_piece_left_out_is_named_and_proven(kinds: tuple[int, ...], data: st.DataObject) -> None:
    """One piece of state left out of the checkpoint is the one thing that is proven; with none left out it is EXACT."""
    omitted = data.draw(st.one_of(st.none(), st.integers(0, len(kinds) - 1)))
    after = data.draw(st.integers(1, 4))

    report = resume_audit.audit(partial(random_jobs.build, kinds, omitted), steps=5, interrupt=[after])

    (resume,) = report.data["resumes"]
    if omitted is None:
        assert report.verdict == "EXACT"
    else:
        assert [entry["path"] for entry in resume["diagnosis"]["proven"]] == [random_jobs.lost_path(kinds, omitted)]


@given(kind=st.sampled_from(range(len(random_jobs.KINDS))))
@settings(max_examples=len(random_jobs.KINDS), deadline=None, derandomize=True)
@example(kind=0)
def test_every_kind_of_piece_is_found_alone(kind: int) -> None:
    """Each kind of state, left out on its own, is named with the path that a programmer would write."""
    report = resume_audit.audit(partial(random_jobs.build, (kind,), 0), steps=3, interrupt=[2])

    (resume,) = report.data["resumes"]
    assert [entry["path"] for entry in resume["diagnosis"]["proven"]] == [random_jobs.lost_path((kind,), 0)]
