"""Saving and loading: from every point, by value, through bytes, and checked before anything changes."""

from __future__ import annotations

import copy
import pickle
import random
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import experiment
from experiment import SPECS, CheckpointError, ExperimentConfig, TrainingJob

if TYPE_CHECKING:
    from collections.abc import Callable

FULL = SPECS["full_mid_accumulation"]
Reference = dict[int, dict[str, Any]]


def interrupted(microsteps: int) -> TrainingJob:
    """A job of seed 11 after that many micro-steps."""
    job = experiment.make_job(11)
    experiment.run_until_microstep(job, microsteps)
    return job


def through_bytes(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload as it comes back from storage."""
    return experiment.checkpoint_from_bytes(experiment.checkpoint_bytes(payload))


def resumed(payload: dict[str, Any]) -> TrainingJob:
    """A fresh job of seed 11 with the payload loaded."""
    job = experiment.make_job(11)
    experiment.load_checkpoint(job, payload)
    return job


def finished(job: TrainingJob, remaining: int) -> dict[str, Any]:
    """The job's state after that many more micro-steps."""
    experiment.run_until_microstep(job, job.global_microstep + remaining)
    return experiment.snapshot(job)


class TestResume:
    @pytest.mark.parametrize("microsteps", range(37))
    def test_from_every_microstep(self, reference: Reference, microsteps: int) -> None:
        """A full checkpoint resumes exactly from every micro-step, 0 to 36: right after loading, and in the end."""
        source = interrupted(microsteps)
        payload = through_bytes(experiment.save_checkpoint(source, FULL))
        at_interruption = experiment.snapshot(source)

        job = resumed(payload)

        assert experiment.nothing_differs(experiment.snapshot(job), at_interruption)
        assert experiment.nothing_differs(finished(job, 36 - microsteps), reference[12])

    def test_of_a_resume(self, reference: Reference) -> None:
        """A resume of a resume of a resume is exact."""
        job, done = experiment.make_job(11), 0
        for microsteps in (4, 12, 16, 35):
            experiment.run_until_microstep(job, microsteps)
            job, done = resumed(through_bytes(experiment.save_checkpoint(job, FULL))), microsteps

        assert experiment.nothing_differs(finished(job, 36 - done), reference[12])

    def test_twice_from_one_payload(self, reference: Reference) -> None:
        """Two resumes from one payload are equal, and the payload is what it was."""
        payload = experiment.save_checkpoint(interrupted(16), FULL)
        before = experiment.canonical_bytes(payload)

        states = [finished(resumed(payload), 20) for _ in range(2)]

        assert all(experiment.nothing_differs(state, reference[12]) for state in states)
        assert experiment.canonical_bytes(payload) == before

    @pytest.mark.parametrize("name", ["model", "optimizer", "gradients"])
    def test_from_another_memory_layout(self, reference: Reference, name: str) -> None:
        """A payload whose tensors lie otherwise in memory is equal, so it resumes equally."""
        payload = experiment.save_checkpoint(interrupted(16), FULL)

        def transposed(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return value.t().contiguous().t() if value.dim() > 1 else value
            return {key: transposed(item) for key, item in value.items()} if isinstance(value, dict) else value

        other = payload | {name: transposed(payload[name])}

        assert experiment.exact_nested_equal(other, payload)
        assert experiment.nothing_differs(finished(resumed(other), 20), reference[12])

    def test_saving_disturbs_nothing(self, reference: Reference) -> None:
        """A job that is saved after every micro-step trains on as if it had not been."""
        job = experiment.make_job(11)
        for _ in range(36):
            experiment.save_checkpoint(job, FULL)
            experiment.run_one_microstep(job)

        assert experiment.nothing_differs(experiment.snapshot(job), reference[12])

    def test_in_a_new_process(self, reference: Reference, tmp_path: Path) -> None:
        """A checkpoint in a file resumes exactly in another process."""
        path = tmp_path / "checkpoint.pt"
        path.write_bytes(experiment.checkpoint_bytes(experiment.save_checkpoint(interrupted(16), FULL)))
        program = (
            "import pathlib, sys, experiment as e; job = e.make_job(11); "
            "e.load_checkpoint(job, e.checkpoint_from_bytes(pathlib.Path(sys.argv[1]).read_bytes())); "
            "e.run_until_microstep(job, 36); state = e.snapshot(job); del state['last_loss']; print(e.sha256(state))"
        )

        process = subprocess.run(
            [sys.executable, "-c", program, path],
            cwd=Path(experiment.__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )

        expected = {name: value for name, value in reference[12].items() if name != "last_loss"}
        assert process.stdout.strip() == experiment.sha256(expected)

    def test_snapshots_and_payloads_are_values(self) -> None:
        """Training on changes neither a payload nor a snapshot taken earlier."""
        job = interrupted(16)
        payload, snapshot = experiment.save_checkpoint(job, FULL), experiment.snapshot(job)
        before = experiment.canonical_bytes([payload, snapshot])

        experiment.run_until_microstep(job, 30)

        assert experiment.canonical_bytes([payload, snapshot]) == before


# Left out, and yet nothing shows: why. All else must make the model diverge.
WITHOUT_EFFECT = {
    (15, "counters"): "between updates nothing but the loop's end reads a counter, and that is given by who runs it",
    (15, "gradients"): "between updates there are none",
}


@pytest.mark.parametrize("microsteps", [15, 16])
@pytest.mark.parametrize("name", experiment.COMPONENT_FIELDS)
def test_each_omission(reference: Reference, name: str, microsteps: int) -> None:
    """Each component that is left out makes the model diverge, or it is known why it cannot."""
    left_out: dict[str, Any] = {f"include_{name}": False}
    spec = replace(FULL, **left_out)
    payload = through_bytes(experiment.save_checkpoint(interrupted(microsteps), spec))

    state = finished(resumed(payload), 36 - microsteps)

    model_exact = experiment.compare_snapshots(state, reference[12])["model_exact"]
    assert model_exact is ((microsteps, name) in WITHOUT_EFFECT)


class TestSave:
    @pytest.mark.parametrize("name", experiment.SCENARIOS)
    def test_payload_has_what_the_spec_includes(self, name: str) -> None:
        """A payload has the header and the components of its spec, and comes back from bytes unchanged."""
        payload = experiment.save_checkpoint(interrupted(15), SPECS[name])

        assert sorted(payload) == sorted(["schema_version", "scenario", "config", *SPECS[name].included])
        assert (payload["schema_version"], payload["scenario"]) == (1, name)
        assert experiment.exact_nested_equal(through_bytes(payload), payload)

    @pytest.mark.parametrize("name", ["full_boundary", "omit_rng", "model_optimizer_only"])
    def test_boundary_spec_inside_a_window(self, name: str) -> None:
        """A checkpoint that would silently lose an open window's gradients is refused."""
        with pytest.raises(ValueError, match=f"{name} saves no gradients, but the job is 1 micro-step.* window of 3"):
            experiment.save_checkpoint(interrupted(16), SPECS[name])

    def test_deliberate_loss_inside_a_window(self) -> None:
        """The scenario that leaves the gradients out on purpose can be saved inside a window."""
        assert "gradients" not in experiment.save_checkpoint(interrupted(16), SPECS["mid_without_gradients"])


def edited(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    """An edit of a payload: set the value at a path such as `stream/cursor`, or drop it where it is `DROP`."""

    def edit(payload: dict[str, Any]) -> None:
        *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
        holder: Any = payload
        for part in parents:
            holder = holder[part]
        if value is DROP:
            del holder[last]
        else:
            holder[last] = value(holder[last]) if callable(value) else value

    return edit


DROP = object()
HUGE = 10**5000

BAD_EDITS: dict[str, list[Any]] = {
    "schema_version": [2, 0, "1", 1.0, True, None, DROP],
    "scenario": [3, None, DROP],
    "config": [None, {}, DROP],
    "config/learning_rate": [0.02, 1, "0.03", DROP],
    "config/batch_size": [2, 4.0, HUGE, DROP],
    "config/extra": [1],
    "extra": [1],
    "model": [None, [], {}],
    "model/input.weight": [lambda t: t.double(), lambda t: t.T.clone(), lambda t: t.tolist(), None, DROP],
    "model/extra": [torch.zeros(1)],
    "optimizer": [None, {}],
    "optimizer/state": [DROP, None, [], lambda state: {float(key): item for key, item in state.items()}],
    "optimizer/state/0": [DROP, None, {}],
    "optimizer/state/9": [{}],
    "optimizer/state/0/exp_avg": [lambda t: t.double(), lambda t: t[:1], DROP, None],
    "optimizer/state/0/step": [6, lambda t: t.long(), lambda t: t.reshape(1), DROP],
    "optimizer/param_groups": [[], None, DROP, lambda groups: groups * 2],
    "optimizer/param_groups/0/lr": ["0.03", None, float("nan"), float("inf"), -0.1, DROP],
    "optimizer/param_groups/0/betas": [(0.8, 0.999), [0.9, 0.999], DROP],
    "optimizer/param_groups/0/weight_decay": [0.02],
    "optimizer/param_groups/0/fused": [False, None],
    "optimizer/param_groups/0/params": [[0, 1, 2], [1, 0, 2, 3]],
    "scheduler": [None, {}],
    "scheduler/last_epoch": [-1, 5.0, None, DROP],
    "scheduler/_step_count": [-5],
    "scheduler/_last_lr": [[float("nan")], []],
    "scheduler/step_size": [5, DROP],
    "scheduler/gamma": [0.5],
    "stream": [None, {}],
    "stream/order": [
        lambda t: t.clone().fill_(0),
        lambda t: t[:-1],
        lambda t: t.to(torch.int32),
        lambda t: t + 1,
        None,
        DROP,
    ],
    "stream/cursor": [-4, 3, 52, "4", 4.0, True, HUGE, DROP],
    "stream/epoch": [-1, None, DROP],
    "stream/batch_size": [2, DROP],
    "stream/generator_state": [lambda t: t[:-1], lambda t: t.fill_(7), lambda t: t.long(), None, DROP],
    "counters": [None, {}],
    "counters/optimizer_step": [4, 6, 13, -1, 5.0, True, None, DROP],
    "counters/microstep_in_accumulation": [0, 2, 3, -1, None, DROP],
    "counters/global_microstep": [15, 17, HUGE, None, DROP],
    "counters/extra": [1],
    "gradients": [None, {}],
    "gradients/input.bias": [lambda t: t.double(), lambda t: t[:-1], 0.0, DROP],
    "gradients/extra": [None],
    "rng": [None, {}],
    "rng/python": [DROP, None, {}],
    "rng/python/version": [2, None],
    "rng/python/words": [lambda t: t[:-1], lambda t: t - 2**40, lambda t: t + 2**32, lambda t: t.to(torch.int32), DROP],
    "rng/python/gauss_next": [1, "x", DROP],
    "rng/numpy": [DROP, None],
    "rng/numpy/key": [lambda t: t[:-1], lambda t: t.to(torch.int64), DROP],
    "rng/numpy/pos": [-1, 625, 3.0, DROP],
    "rng/numpy/has_gauss": [2, None],
    "rng/numpy/bit_generator": ["PCG64"],
    "rng/torch_cpu": [lambda t: t[:-1], lambda t: t.fill_(7), None, DROP],
}


@pytest.fixture(scope="module")
def data() -> bytes:
    """A full checkpoint inside an accumulation window, as bytes."""
    return experiment.checkpoint_bytes(experiment.save_checkpoint(interrupted(16), FULL))


class TestLoadIsCheckedFirst:
    @pytest.mark.parametrize(
        ("path", "value"),
        [
            pytest.param(path, value, id=f"{path}-{index}")
            for path, values in BAD_EDITS.items()
            for index, value in enumerate(values)
        ],
    )
    def test_refused_and_nothing_changed(self, data: bytes, path: str, value: object) -> None:
        """A payload that does not fit is refused in one line that names the field, and job and generators stay."""
        payload = experiment.checkpoint_from_bytes(data)
        edited(path, value)(payload)
        job = interrupted(4)
        before = experiment.canonical_bytes(experiment.snapshot(job))

        with pytest.raises(CheckpointError) as caught:
            experiment.load_checkpoint(job, payload)

        named = caught.value.field.replace("[", ".").replace("]", "").split(".")
        wanted = path.replace("/", ".").split(".")
        shared = min(len(named), len(wanted))
        assert named[:shared] == wanted[:shared] or "payload" in named or "counters" in named
        assert str(caught.value).startswith(f"checkpoint field {caught.value.field}: holds ")
        assert "\n" not in str(caught.value)
        assert experiment.canonical_bytes(experiment.snapshot(job)) == before

    def test_is_a_value_error(self) -> None:
        """A `CheckpointError` is a `ValueError`, and tells the same after a journey between processes."""
        error = CheckpointError("stream.cursor", "3", "an integer from 0 to 48")

        assert isinstance(error, ValueError)
        for journeyed in (error, pickle.loads(pickle.dumps(error))):  # noqa: S301 -- its own bytes
            assert str(journeyed) == "checkpoint field stream.cursor: holds 3, wanted an integer from 0 to 48"

    def test_message_says_what_is_odd(self, data: bytes) -> None:
        """A refused value that looks like the one wanted is told by what sets it apart."""
        payload = experiment.checkpoint_from_bytes(data)
        payload["optimizer"]["param_groups"][0]["params"] = [0, 1, 2, 2]
        with pytest.raises(CheckpointError, match=re.escape("holds [0, 1, 2, 2], wanted [0, 1, 2, 3]")):
            experiment.load_checkpoint(experiment.make_job(11), payload)

        payload = experiment.checkpoint_from_bytes(data)
        payload["model"]["input.weight"] = payload["model"]["input.weight"].to_sparse()
        with pytest.raises(CheckpointError, match=r"\(torch\.sparse_coo, cpu\), wanted tensor of dtype float32"):
            experiment.load_checkpoint(experiment.make_job(11), payload)

    @pytest.mark.parametrize("payload", [None, [], "payload", 7])
    def test_no_dict(self, payload: Any) -> None:
        """A payload that is no dict is refused like any other that does not fit."""
        with pytest.raises(CheckpointError, match="checkpoint field payload: holds "):
            experiment.load_checkpoint(experiment.make_job(11), payload)

    def test_another_configuration(self, data: bytes, cfg: ExperimentConfig) -> None:
        """A checkpoint of another configuration is refused by the name of the first setting that differs."""
        job = experiment.make_job(11, replace(cfg, hidden_dim=17))

        with pytest.raises(CheckpointError, match=r"config\.hidden_dim: holds 16, wanted 17"):
            experiment.load_checkpoint(job, experiment.checkpoint_from_bytes(data))

    def test_job_that_has_trained_takes_a_checkpoint(self, data: bytes, reference: Reference) -> None:
        """A job that is not fresh is brought to the checkpoint's state all the same."""
        job = interrupted(34)

        experiment.load_checkpoint(job, experiment.checkpoint_from_bytes(data))

        assert experiment.nothing_differs(finished(job, 20), reference[12])

    def test_early_checkpoint_without_moments(self, reference: Reference) -> None:
        """A checkpoint from before the first update has no moments yet, and empties those of the job."""
        payload = through_bytes(experiment.save_checkpoint(interrupted(2), FULL))
        job = interrupted(34)

        experiment.load_checkpoint(job, payload)

        assert experiment.nothing_differs(finished(job, 34), reference[12])


class Exploit:
    """An object whose unpickling would run code."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Name a call that unpickling would make."""
        return pytest.fail, ("pickle code was run",)


class TestBytes:
    @pytest.mark.parametrize("data", [b"", b"\0", b"PK\3\4garbage", pickle.dumps({"a": 1})])
    def test_garbage(self, data: bytes) -> None:
        """Bytes that are no checkpoint are refused in one line."""
        with pytest.raises(CheckpointError, match=r"^checkpoint field payload: holds bytes that do not load") as caught:
            experiment.checkpoint_from_bytes(data)

        assert "\n" not in str(caught.value)

    def test_no_pickle_code_is_run(self) -> None:
        """A file that would run code when unpickled is refused, and the code is not run."""
        with pytest.raises(CheckpointError, match="payload"):
            experiment.checkpoint_from_bytes(experiment.checkpoint_bytes({"scenario": Exploit()}))

    def test_every_truncation(self) -> None:
        """A checkpoint cut off at any place is refused."""
        data = experiment.checkpoint_bytes(experiment.save_checkpoint(interrupted(1), FULL))

        for length in range(0, len(data), 997):
            with pytest.raises(CheckpointError):
                experiment.checkpoint_from_bytes(data[:length])


class TestGradients:
    def test_none_is_not_zero(self) -> None:
        """No gradient and a zero gradient are different states, and each comes back as it was."""
        model = experiment.make_job(11).model
        model.input.weight.grad = torch.zeros_like(model.input.weight)

        captured = experiment.capture_gradients(model)
        model.zero_grad(set_to_none=True)
        assert not experiment.exact_nested_equal(captured, experiment.capture_gradients(model))
        experiment.restore_gradients(model, captured)

        assert experiment.exact_nested_equal(captured, experiment.capture_gradients(model))
        assert captured["output.bias"] is None

    @pytest.mark.parametrize("names", [["input.weight"], ["other"]])
    def test_other_names(self, names: list[str]) -> None:
        """Gradients of another model are refused, and the model keeps its own."""
        model = interrupted(1).model
        before = experiment.canonical_bytes(experiment.capture_gradients(model))

        with pytest.raises(ValueError, match=r"gradients\."):
            experiment.restore_gradients(model, dict.fromkeys(names))

        assert experiment.canonical_bytes(experiment.capture_gradients(model)) == before

    @given(st.lists(st.sampled_from([None, 0.0, -0.0, 1.5, float("nan")]), min_size=4, max_size=4))
    def test_round_trip(self, values: list[float | None]) -> None:
        """Any mixture of gradients and none comes back as it was, and shares no memory with what was captured."""
        model, twin = experiment.make_job(11).model, experiment.make_job(12).model
        for parameter, value in zip(model.parameters(), values, strict=True):
            parameter.grad = None if value is None else torch.full_like(parameter, value)
        captured = experiment.capture_gradients(model)
        before = experiment.canonical_bytes(captured)

        experiment.restore_gradients(twin, captured)
        assert experiment.canonical_bytes(experiment.capture_gradients(twin)) == before
        for parameter in twin.parameters():
            if parameter.grad is not None:
                parameter.grad.fill_(7.0)

        assert experiment.canonical_bytes(captured) == before


class TestRandomGenerators:
    @given(
        seed=st.integers(0, 2**32 - 1),
        draws=st.lists(st.sampled_from(["random", "gauss", "normal", "randn", "dropout"]), max_size=6),
        through=st.booleans(),
    )
    def test_round_trip(self, *, seed: int, draws: list[str], through: bool) -> None:
        """Captured states, also through bytes and also with a second normal number pending, draw the same again."""
        draw: dict[str, Callable[[], Any]] = {
            "random": random.random,
            "gauss": lambda: random.gauss(0.0, 1.0),
            "normal": lambda: float(np.random.normal()),
            "randn": lambda: torch.randn(3),
            "dropout": lambda: torch.nn.functional.dropout(torch.ones(9), 0.5),
        }
        experiment.seed_all(seed)
        for name in draws:
            draw[name]()
        state = experiment.capture_rng_state()
        state = through_bytes(state) if through else state
        expected = [draw[name]() for name in [*draws, *draw]]

        experiment.seed_all(0)
        experiment.restore_rng_state(state)

        assert experiment.exact_nested_equal(experiment.capture_rng_state(), state)
        assert experiment.exact_nested_equal([draw[name]() for name in [*draws, *draw]], expected)

    def test_capture_is_a_value(self) -> None:
        """Drawing on does not change a captured state, nor does restoring it."""
        state = experiment.capture_rng_state()
        before = copy.deepcopy(state)

        experiment.restore_rng_state(state)
        random.random()
        np.random.normal()
        torch.randn(1)

        assert experiment.exact_nested_equal(state, before)
