"""What the experiment shows, and that an independent formulation of the fixture shows the same."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

import experiment

Results = dict[tuple[int, str], dict[str, Any]]

EXACT = ("full_boundary", "full_mid_accumulation")
FIRST_DIVERGENT = {
    "full_boundary": None,
    "model_optimizer_only": 6,
    "omit_rng": 6,
    "omit_stream": 6,
    "omit_scheduler": 9,
    "full_mid_accumulation": None,
    "mid_without_gradients": 6,
}
LR_ERROR = {"model_optimizer_only": 4.41e-3, "omit_scheduler": 4.41e-3}
# Largest final parameter errors for seed 11, to five digits.
PARAMETER_ERRORS = {
    "model_optimizer_only": 6.3974e-2,
    "omit_rng": 7.1138e-2,
    "omit_stream": 6.5703e-2,
    "omit_scheduler": 6.0648e-3,
    "mid_without_gradients": 1.7922e-2,
}
DIFFERS = {  # what of the final comparison is not exact, where the model is not
    "model_optimizer_only": {"model", "optimizer", "scheduler", "stream", "rng"},
    "omit_rng": {"model", "optimizer", "rng"},
    "omit_stream": {"model", "optimizer", "stream"},
    "omit_scheduler": {"model", "optimizer", "scheduler"},
    "mid_without_gradients": {"model", "optimizer"},
}

every_result = pytest.mark.parametrize("scenario", experiment.SCENARIOS)
every_seed = pytest.mark.parametrize("seed", experiment.SEEDS)


@every_seed
@every_result
class TestEachResult:
    def test_first_divergent_update(self, results: Results, seed: int, scenario: str) -> None:
        """The model first differs after update 6, after 9 without the scheduler, never with a full checkpoint."""
        assert results[seed, scenario]["first_divergent_optimizer_step"] == FIRST_DIVERGENT[scenario]

    def test_exactness(self, results: Results, seed: int, scenario: str) -> None:
        """A full checkpoint resumes exactly, with errors of exactly 0; no other does."""
        result = results[seed, scenario]

        assert result["exact_resume"] is (scenario in EXACT)
        if scenario in EXACT:
            assert [result[name] for name in experiment.EXACT_FIELDS] == [True] * 7
            assert [result[name] for name in experiment.ERROR_FIELDS] == [0.0] * 3
            assert result["reference_final_model_hash"] == result["resumed_final_model_hash"]

    def test_what_differs_in_the_end(self, results: Results, seed: int, scenario: str) -> None:
        """What was left out differs in the end, with the model and the optimizer, and nothing else does."""
        result = results[seed, scenario]

        differing = {name for name in experiment.COMPARED_COMPONENTS if not result[f"{name}_exact"]}

        assert differing == DIFFERS.get(scenario, set())

    def test_next_batch(self, results: Results, seed: int, scenario: str) -> None:
        """The next batch is another only where the stream was lost."""
        assert results[seed, scenario]["next_batch_match"] is (scenario not in ("model_optimizer_only", "omit_stream"))

    def test_learning_rate_error(self, results: Results, seed: int, scenario: str) -> None:
        """The final learning rate is off by 4.41e-3 where the scheduler was lost, and exact elsewhere."""
        assert results[seed, scenario]["learning_rate_error"] == pytest.approx(LR_ERROR.get(scenario, 0.0), rel=1e-9)

    def test_trace_ends_as_the_result(self, results: Results, seed: int, scenario: str) -> None:
        """The trace has a row for each update after the resume, and its last row is the final comparison."""
        result = results[seed, scenario]
        trace = result["step_trace"]

        assert [row["logical_step"] for row in trace] == list(range(6, 13))
        assert trace[-1]["model_exact"] is result["model_exact"]
        assert trace[-1]["max_parameter_abs_error"] == result["max_parameter_abs_error"]
        assert trace[-1]["learning_rate_error"] == result["learning_rate_error"]


@pytest.mark.parametrize("scenario", PARAMETER_ERRORS)
def test_parameter_errors_of_seed_11(results: Results, scenario: str) -> None:
    """The largest final parameter errors of seed 11 are the published ones, to five digits."""
    assert f"{results[11, scenario]['max_parameter_abs_error']:.4e}" == f"{PARAMETER_ERRORS[scenario]:.4e}"


@every_seed
def test_learning_rate_is_wrong_before_the_model(results: Results, seed: int) -> None:
    """Without the scheduler the learning rate is wrong at update 8 already, one update before the model shows it."""
    wrong = [row["logical_step"] for row in results[seed, "omit_scheduler"]["step_trace"] if row["learning_rate_error"]]

    assert wrong == [8, 12]


@every_seed
def test_job_without_counters_counts_from_zero(results: Results, seed: int) -> None:
    """A job resumed without counters counts its updates from 1, and still makes all that remain."""
    trace = results[seed, "model_optimizer_only"]["step_trace"]

    assert [row["actual_optimizer_step_counter"] for row in trace] == list(range(1, 8))


@pytest.mark.parametrize("position", ["optimizer_step_boundary", "mid_accumulation"])
def test_interruption_coordinates(results: Results, position: str) -> None:
    """A boundary interruption is after update 5, one inside a window a micro-step later."""
    found = {
        (result["interrupt_optimizer_step"], result["interrupt_microstep_in_accumulation"])
        for result in results.values()
        if result["checkpoint_position"] == position
    }

    assert found == {(5, 0 if position == "optimizer_step_boundary" else 1)}


def test_result_has_the_documented_fields(results: Results) -> None:
    """A result has the fields of the contract, and payload keys in alphabetical order."""
    result = results[11, "full_mid_accumulation"]

    assert set(result) == {
        *("seed", "scenario", "checkpoint_position", "payload_keys", "interrupt_optimizer_step"),
        *("interrupt_microstep_in_accumulation", "reference_final_model_hash", "resumed_final_model_hash"),
        *("first_divergent_optimizer_step", "exact_resume", "model_exact", "optimizer_exact", "scheduler_exact"),
        *("stream_exact", "rng_exact", "gradients_exact", "next_batch_match", "max_parameter_abs_error"),
        *("max_optimizer_tensor_abs_error", "learning_rate_error", "step_trace"),
    }
    assert result["payload_keys"] == [
        *("config", "counters", "gradients", "model", "optimizer", "rng", "scenario", "scheduler", "schema_version"),
        "stream",
    ]


def plain_training(seed: int) -> tuple[list[float], list[list[int]], torch.Tensor]:
    """Train the fixture in plain loops, as the contract words it; return losses, batches and final parameters."""
    torch.use_deterministic_algorithms(mode=True)
    torch.set_num_threads(1)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

    data = torch.Generator().manual_seed(20260717)
    x = torch.randn(48, 8, generator=data)
    teacher = torch.randn(8, 3, generator=data)
    bias = torch.randn(3, generator=data) * 0.2
    y = torch.argmax(x @ teacher + bias, dim=1)

    hidden, head = torch.nn.Linear(8, 16), torch.nn.Linear(16, 3)
    parameters = [hidden.weight, hidden.bias, head.weight, head.bias]
    optimizer = torch.optim.AdamW(parameters, lr=0.03, weight_decay=0.01, fused=True)
    shuffle = torch.Generator().manual_seed(seed + 10_000)

    losses, batches = [], []
    rate = 0.03
    for microstep in range(36):
        if microstep % 12 == 0:
            order = torch.randperm(48, generator=shuffle)
        ids = order[microstep % 12 * 4 : microstep % 12 * 4 + 4]
        scale = 1 + (2 * random.random() - 1) * 0.05
        noise = torch.tensor(np.random.normal(0, 0.015, (4, 8)).astype(np.float32))
        activations = torch.nn.functional.dropout(torch.tanh(hidden(x[ids] * scale + noise)), 0.35)
        loss = torch.nn.functional.cross_entropy(head(activations), y[ids])
        (loss / 3).backward()  # type: ignore[no-untyped-call]  # untyped in torch
        losses.append(loss.item())
        batches.append(ids.tolist())
        if microstep % 3 == 2:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if (microstep + 1) // 3 % 4 == 0:
                rate *= 0.7
                optimizer.param_groups[0]["lr"] = rate
    return losses, batches, torch.cat([p.detach().flatten() for p in parameters])


@every_seed
def test_independent_formulation(seed: int) -> None:
    """Plain loops that share no code with the experiment give the same batches, losses and parameters, bit for bit."""
    losses, batches, parameters = plain_training(seed)
    job = experiment.make_job(seed)
    job_losses, job_batches = [], []

    for _ in range(36):
        experiment.run_one_microstep(job)
        job_losses.append(job.last_loss)
        job_batches.append(list(job.last_batch_ids))

    assert job_batches == batches
    assert [loss.hex() for loss in job_losses] == [loss.hex() for loss in losses]
    assert experiment.exact_nested_equal(experiment.model_vector(job.model), parameters)


def test_each_reference_and_source_is_trained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One seed's seven scenarios take 212 micro-steps: one reference, two sources, seven resumes."""
    microsteps = 0
    run_one_microstep = experiment.run_one_microstep

    def counted(job: experiment.TrainingJob) -> bool:
        nonlocal microsteps
        microsteps += 1
        return run_one_microstep(job)

    monkeypatch.setattr(experiment, "run_one_microstep", counted)

    list(experiment.evaluate_seed(11, experiment.SCENARIOS, experiment.ExperimentConfig()))

    assert microsteps == 36 + 15 + 16 + 5 * 21 + 2 * 20
