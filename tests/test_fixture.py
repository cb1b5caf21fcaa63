"""Configuration, data, stream and micro-step of the fixture."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import experiment
from experiment import ExperimentConfig, StatefulBatchStream


class TestConfig:
    def test_defaults(self) -> None:
        """The defaults are those of the contract, and the derived counts follow from them."""
        cfg = ExperimentConfig()

        assert (cfg.total_microsteps, cfg.boundary_interrupt_microsteps, cfg.mid_interrupt_microstep_index) == (
            36,
            15,
            16,
        )
        assert (cfg.input_dim, cfg.hidden_dim, cfg.num_classes, cfg.num_examples, cfg.batch_size) == (8, 16, 3, 48, 4)
        assert (cfg.learning_rate, cfg.weight_decay, cfg.scheduler_gamma, cfg.dropout_probability) == (
            0.03,
            0.01,
            0.7,
            0.35,
        )
        assert (cfg.numpy_noise_std, cfg.python_scale_half_width, cfg.dataset_seed) == (0.015, 0.05, 20260717)

    def test_frozen(self) -> None:
        """A configuration cannot be changed."""
        with pytest.raises(FrozenInstanceError):
            ExperimentConfig().batch_size = 2  # type: ignore[misc]  # what must fail

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *((name, 0) for name in ("input_dim", "hidden_dim", "num_classes", "num_examples", "batch_size")),
            *((name, 0) for name in ("accumulation_steps", "total_optimizer_steps", "scheduler_step_size")),
            *((name, 4.0) for name in ("batch_size", "total_optimizer_steps")),
            *((name, True) for name in ("batch_size", "learning_rate")),
            *((name, "4") for name in ("batch_size", "learning_rate")),
            *(("learning_rate", value) for value in (math.nan, math.inf, -0.1, 10**400, None)),
            *(("dropout_probability", value) for value in (1.0, 1, -0.1, math.nan)),
            *((name, math.nan) for name in ("weight_decay", "scheduler_gamma", "numpy_noise_std")),
            *(("python_scale_half_width", value) for value in (math.inf, -1.0)),
            *(("batch_size", value) for value in (5, 96, -4)),
            *(("boundary_interrupt_step", value) for value in (-1, 13)),
            *(("mid_interrupt_completed_steps", value) for value in (-1, 12)),
            *(("mid_interrupt_microsteps", value) for value in (0, 3)),
            *(("dataset_seed", value) for value in (-1, 2**32)),
        ],
    )
    def test_impossible_values_are_named(self, name: str, value: Any) -> None:
        """An impossible value is refused in one line that names the field and what it holds."""
        with pytest.raises(ValueError, match=f"^{name} must be .*, not ") as caught:
            ExperimentConfig(**{name: value})

        assert "\n" not in str(caught.value)

    def test_integer_rates_are_the_same_configuration(self) -> None:
        """A rate given as an integer is stored as the float that it means."""
        cfg = ExperimentConfig(learning_rate=1)

        assert type(cfg.learning_rate) is float
        assert cfg == ExperimentConfig(learning_rate=1.0)

    def test_window_of_one_has_no_inside(self) -> None:
        """With one micro-step for each update only boundary scenarios make sense, and the others say so."""
        cfg = ExperimentConfig(accumulation_steps=1, mid_interrupt_microsteps=0)

        assert experiment.evaluate_scenario(11, "full_boundary", cfg)["exact_resume"]
        with pytest.raises(ValueError, match="accumulation_steps must be at least 2"):
            experiment.evaluate_scenario(11, "full_mid_accumulation", cfg)

    def test_huge_integers_are_named_too(self) -> None:
        """An integer that is too long to print is refused like any other value, by the name of its field."""
        with pytest.raises(ValueError, match="learning_rate must be a finite number, not integer of 16610 bits"):
            ExperimentConfig(learning_rate=10**5000)
        with pytest.raises(ValueError, match=r"a seed must be .*, not integer of 16610 bits"):
            experiment.checked_seed(10**5000)


class TestSpecs:
    def test_unknown_position(self) -> None:
        """A spec of another position is refused, before it can save anything."""
        with pytest.raises(ValueError, match="unknown checkpoint position 'nowhere'"):
            experiment.ScenarioSpec("x", "nowhere")

    def test_constants(self) -> None:
        """Seeds, scenarios and their table are those of the contract."""
        assert experiment.SEEDS == (11, 17, 29, 47, 83)
        assert (*experiment.SPECS,) == experiment.SCENARIOS
        assert {name: spec.omitted for name, spec in experiment.SPECS.items()} == {
            "full_boundary": (),
            "model_optimizer_only": ("scheduler", "rng", "stream", "counters"),
            "omit_rng": ("rng",),
            "omit_stream": ("stream",),
            "omit_scheduler": ("scheduler",),
            "full_mid_accumulation": (),
            "mid_without_gradients": ("gradients",),
        }

    def test_table_of_components_matches_the_specs(self) -> None:
        """Every component of the table can be left out by a spec, and the generators are restored last."""
        names = [component.name for component in experiment.COMPONENTS]

        assert names == ["model", "optimizer", "scheduler", "stream", "counters", "gradients", "rng"]
        assert sorted(names) == sorted(experiment.COMPONENT_FIELDS)
        assert set(experiment.COMPARED_COMPONENTS) == set(names) - {"counters"}


@pytest.mark.parametrize("seed", [-1, 2**32, 1.0, "11", None, True, math.nan])
def test_seeds_are_checked(seed: Any) -> None:
    """A seed that is no integer from 0 to 2**32 - 1 is refused."""
    with pytest.raises(ValueError, match="a seed must be an integer from 0 to 4294967295, not"):
        experiment.make_job(seed)


@pytest.mark.parametrize("seed", [0, 2**32 - 1, np.int64(11)])
def test_all_seeds_of_the_range_work(seed: Any) -> None:
    """The first and the last seed work, and NumPy's integers do."""
    assert experiment.evaluate_scenario(seed, "full_mid_accumulation")["exact_resume"]


class TestDataset:
    def test_shapes_and_labels(self, cfg: ExperimentConfig) -> None:
        """48 float32 examples with class indices, the same at every call, whatever the process generators hold."""
        x, y = experiment.make_dataset(cfg)
        torch.randn(3)
        again = experiment.make_dataset(cfg)

        assert (x.shape, x.dtype, y.shape, y.dtype) == ((48, 8), torch.float32, (48,), torch.int64)
        assert set(y.tolist()) == {0, 1, 2}
        assert experiment.exact_nested_equal((x, y), again)


def make_stream(batches: int, batch_size: int, seed: int = 3) -> StatefulBatchStream:
    """A stream over numbered examples."""
    x = torch.arange(batches * batch_size, dtype=torch.float32)
    return StatefulBatchStream(x, x.to(torch.int64), seed, batch_size)


sizes = st.integers(1, 5)
steps = st.integers(0, 12)


class TestStream:
    @pytest.mark.parametrize(
        ("examples", "labels", "batch_size"), [(4, 3, 1), (4, 4, 3), (4, 4, 0), (0, 0, 1), (2, 2, 4)]
    )
    def test_sizes_that_do_not_fit(self, examples: int, labels: int, batch_size: int) -> None:
        """Lengths that differ or that are no multiple of the batch size are refused."""
        with pytest.raises(ValueError, match="length"):
            StatefulBatchStream(torch.zeros(examples), torch.zeros(labels), 0, batch_size)

    @given(batches=sizes, batch_size=sizes, seed=st.integers(0, 2**32), epochs=st.integers(1, 4))
    def test_every_epoch_is_a_permutation(self, batches: int, batch_size: int, seed: int, epochs: int) -> None:
        """Every epoch hands out every example once, with its label."""
        stream = make_stream(batches, batch_size, seed)

        for epoch in range(epochs):
            seen = []
            for _ in range(batches):
                x, y, ids = stream.next_batch()
                assert x.tolist() == y.tolist() == ids
                assert stream.epoch == epoch
                seen += ids
            assert sorted(seen) == list(range(batches * batch_size))

    @given(batches=sizes, batch_size=sizes, before=steps, after=steps, through_bytes=st.booleans())
    def test_round_trip(self, *, batches: int, batch_size: int, before: int, after: int, through_bytes: bool) -> None:
        """A stream restored from a saved place hands out the batches that the saved one does, also through bytes."""
        stream = make_stream(batches, batch_size)
        for _ in range(before):
            stream.next_batch()
        state = stream.state_dict()
        if through_bytes:
            state = experiment.checkpoint_from_bytes(experiment.checkpoint_bytes(state))

        restored = make_stream(batches, batch_size, seed=99)
        restored.load_state_dict(state)

        assert experiment.exact_nested_equal(restored.state_dict(), stream.state_dict())
        for _ in range(after):
            assert restored.peek_next_ids() == stream.next_batch()[2] == restored.next_batch()[2]
        assert experiment.exact_nested_equal(restored.state_dict(), stream.state_dict())

    @given(batches=sizes, batch_size=sizes, before=steps)
    def test_peek_has_no_effect(self, batches: int, batch_size: int, before: int) -> None:
        """Peeking names the next batch and changes neither the stream nor the process generator."""
        stream = make_stream(batches, batch_size)
        for _ in range(before):
            stream.next_batch()
        state, rng = stream.state_dict(), torch.get_rng_state()

        peeked = stream.peek_next_ids()

        assert experiment.exact_nested_equal(stream.state_dict(), state)
        assert torch.equal(torch.get_rng_state(), rng)
        assert stream.next_batch()[2] == peeked

    def test_batches_and_states_are_copies(self) -> None:
        """Changing a batch or a saved place changes neither the stream nor its data."""
        stream, twin = make_stream(3, 2), make_stream(3, 2)
        x, y, _ = stream.next_batch()
        twin.next_batch()
        state = stream.state_dict()

        x.zero_()
        y.zero_()
        state["order"].zero_()
        state["generator_state"].zero_()

        assert experiment.exact_nested_equal(stream.state_dict(), twin.state_dict())
        assert torch.equal(stream.x, twin.x)
        assert torch.equal(stream.y, twin.y)

    def test_loading_copies(self) -> None:
        """A place that was loaded can be changed afterwards without effect on the stream."""
        stream = make_stream(3, 2)
        state = make_stream(3, 2, seed=5).state_dict()
        stream.load_state_dict(state)
        expected = stream.peek_next_ids()

        state["order"].zero_()

        assert stream.peek_next_ids() == expected

    def test_another_batch_size(self) -> None:
        """A place saved with another batch size is refused."""
        with pytest.raises(ValueError, match="batch size is 2, the saved one 3"):
            make_stream(3, 2).load_state_dict(make_stream(2, 3).state_dict())


class TestMicroStep:
    def test_update_closes_the_window(self, cfg: ExperimentConfig) -> None:
        """The third micro-step makes an update and leaves no gradients; the first two keep theirs."""
        job = experiment.make_job(11)

        updates = []
        pending = []
        for _ in range(6):
            updates.append(experiment.run_one_microstep(job))
            pending.append(job.model.input.weight.grad is not None)

        assert updates == [False, False, True] * 2
        assert pending == [True, True, False] * 2
        assert (job.optimizer_step, job.microstep_in_accumulation, job.global_microstep) == (2, 0, 6)
        assert len(job.last_batch_ids) == cfg.batch_size

    def test_new_job(self) -> None:
        """A new job has counted nothing, has no gradients, and uses the fused AdamW."""
        job = experiment.make_job(11)

        assert (job.optimizer_step, job.microstep_in_accumulation, job.global_microstep) == (0, 0, 0)
        assert job.last_batch_ids == ()
        assert math.isnan(job.last_loss)
        assert set(experiment.capture_gradients(job.model).values()) == {None}
        assert job.optimizer.param_groups[0]["fused"] is True

    def test_callbacks_get_the_job_after_each_update(self) -> None:
        """Both runners call back after each update, and stop exactly at their target."""
        job = experiment.make_job(11)
        seen: list[tuple[int, int]] = []

        def record(job: experiment.TrainingJob) -> None:
            seen.append((job.optimizer_step, job.global_microstep))

        experiment.run_until_microstep(job, 7, record)
        experiment.run_until_optimizer_step(job, 4, record)

        assert seen == [(1, 3), (2, 6), (3, 9), (4, 12)]
        assert job.global_microstep == 12

    def test_targets_behind_the_job(self) -> None:
        """A target that lies behind the job is refused; one that is reached already is not."""
        job = experiment.make_job(11)
        experiment.run_until_microstep(job, 4)

        experiment.run_until_microstep(job, 4)
        experiment.run_until_optimizer_step(job, 1)
        with pytest.raises(ValueError, match="micro-step 3 lies behind"):
            experiment.run_until_microstep(job, 3)
        with pytest.raises(ValueError, match="update 0 lies behind"):
            experiment.run_until_optimizer_step(job, 0)

    def test_unknown_position(self, cfg: ExperimentConfig) -> None:
        """A position that is none of the two is refused and named."""
        with pytest.raises(ValueError, match="unknown checkpoint position 'somewhere'"):
            experiment.interrupt_job(11, cfg, "somewhere")

    @pytest.mark.parametrize("learning_rate", [1e20, 3e38])
    def test_divergence_is_an_error(self, cfg: ExperimentConfig, learning_rate: float) -> None:
        """A loss or parameter that is not finite ends the training, naming seed, scenario and micro-step."""
        with pytest.raises(experiment.TrainingDivergedError, match=r"seed=11 scenario=omit_rng microstep=\d+: "):
            experiment.evaluate_scenario(11, "omit_rng", replace(cfg, learning_rate=learning_rate))

    @pytest.mark.parametrize("scenario", ["full_boundary", "model_optimizer_only"])
    def test_divergence_after_the_resume(self, monkeypatch: pytest.MonkeyPatch, scenario: str) -> None:
        """The micro-step named is the uninterrupted training's, also for a job that counts from 0."""
        load = experiment.load_checkpoint

        def load_and_spoil(job: experiment.TrainingJob, payload: Any) -> None:
            load(job, payload)
            torch.nn.init.constant_(job.model.output.bias, math.nan)

        monkeypatch.setattr(experiment, "load_checkpoint", load_and_spoil)

        with pytest.raises(experiment.TrainingDivergedError, match=f"seed=11 scenario={scenario} microstep=16: "):
            experiment.evaluate_scenario(11, scenario)

    def test_divergence_at_the_last_update_is_an_error(self, cfg: ExperimentConfig) -> None:
        """Parameters that overflow at the very last update are found, though no loss follows."""
        cfg = replace(cfg, total_optimizer_steps=1, boundary_interrupt_step=0, mid_interrupt_completed_steps=0)
        with pytest.raises(experiment.TrainingDivergedError, match="microstep=3: a parameter is not finite"):
            experiment.evaluate_scenario(11, "full_boundary", replace(cfg, learning_rate=1e300))
