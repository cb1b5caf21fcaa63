"""The experiment catches what is wrong: with any of these faults put in, the run does not pass."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import experiment
from experiment import TrainingJob

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FULL = ("full_boundary", "full_mid_accumulation")

Spoil = "Callable[[TrainingJob], object]"


def patch_component(monkeypatch: pytest.MonkeyPatch, name: str, **changes: Any) -> None:
    """Replace functions of one component in the table."""
    table = tuple(replace(c, **changes) if c.name == name else c for c in experiment.COMPONENTS)
    monkeypatch.setattr(experiment, "COMPONENTS", table)


def component(name: str) -> experiment.Component[TrainingJob]:
    """The component of that name."""
    return next(c for c in experiment.COMPONENTS if c.name == name)


def first_moment(job: TrainingJob) -> dict[str, torch.Tensor]:
    """Adam's state of the first parameter."""
    state: dict[str, torch.Tensor] = job.optimizer.state[job.model.input.weight]
    return state


def next_float(tensor: torch.Tensor) -> None:
    """Move the first element by one unit in the last place."""
    flat = tensor.detach().view(-1)
    flat[0] = torch.nextafter(flat[0], torch.tensor(torch.inf))


def flip_last_bit(tensor: torch.Tensor) -> None:
    """Flip the lowest bit of the first element."""
    tensor.view(torch.int32).view(-1)[0] ^= 1


def keeping(read: Callable[[], Any], write: Callable[[Any], object]) -> Callable[[TrainingJob, Any], None]:
    """A restore of the generators that loses one of them: what it held before is put back."""

    def restore(_job: TrainingJob, held: Any) -> None:
        before = read()
        experiment.restore_rng_state(held)
        write(before)

    return restore


def scale_gradients(job: TrainingJob) -> None:
    """Scale all gradients a little."""
    for parameter in job.model.parameters():
        if parameter.grad is not None:
            parameter.grad *= 1.0001


def add(owner: Callable[[TrainingJob], Any], name: str, amount: int) -> Callable[[TrainingJob], None]:
    """Add to an attribute of something in the job."""
    return lambda job: setattr(owner(job), name, getattr(owner(job), name) + amount)


RESTORES: dict[str, tuple[str, Callable[[TrainingJob, Any], None]]] = {
    "Python's generator is not restored": ("rng", keeping(random.getstate, random.setstate)),
    "NumPy's generator is not restored": ("rng", keeping(np.random.get_state, np.random.set_state)),
    "torch's generator is not restored": ("rng", keeping(torch.get_rng_state, torch.set_rng_state)),
    "the permutation is not restored": (
        "stream",
        lambda job, held: job.stream.load_state_dict(held | {"order": job.stream.order}),
    ),
    "the permutation's generator is not restored": (
        "stream",
        lambda job, held: job.stream.load_state_dict(held | {"generator_state": job.stream.generator.get_state()}),
    ),
}

AFTER_RESTORE: dict[str, tuple[str, Callable[[TrainingJob], object]]] = {
    "the cursor is one too high": ("stream", add(lambda job: job.stream, "cursor", 1)),
    "the cursor is one too low": ("stream", add(lambda job: job.stream, "cursor", -1)),
    "the stream's epoch is one too high": ("stream", add(lambda job: job.stream, "epoch", 1)),
    "the scheduler's epoch is one too high": ("scheduler", add(lambda job: job.scheduler, "last_epoch", 1)),
    "the scheduler's epoch is one too low": ("scheduler", add(lambda job: job.scheduler, "last_epoch", -1)),
    "Adam's first moment is zeroed": ("optimizer", lambda job: first_moment(job)["exp_avg"].zero_()),
    "Adam's second moment is zeroed": ("optimizer", lambda job: first_moment(job)["exp_avg_sq"].zero_()),
    "Adam's step is one too high": ("optimizer", lambda job: first_moment(job)["step"].add_(1)),
    "Adam's step is one too low": ("optimizer", lambda job: first_moment(job)["step"].sub_(1)),
    "one bit of Adam's state is flipped": ("optimizer", lambda job: flip_last_bit(first_moment(job)["exp_avg"])),
    "one parameter is off by one unit in the last place": ("model", lambda job: next_float(job.model.output.bias)),
    "gradients are scaled": ("gradients", scale_gradients),
    **{
        f"{name} is off by {amount}": ("counters", add(lambda job: job, name, amount))
        for name in experiment.COUNTERS
        for amount in (1, -1)
    },
}


def run_fails(directory: Path, scenarios: tuple[str, ...] = FULL) -> None:
    """Require that the run does not pass: a check fails, a checkpoint is refused, or the training breaks."""
    caught = (
        *(experiment.AcceptanceError, experiment.CheckpointError, experiment.TrainingDivergedError),
        experiment.ArtifactError,  # a result that contradicts itself
    )
    with pytest.raises(caught):
        experiment.run_experiment(directory, seeds=[11], scenarios=scenarios)


def test_unharmed_run_passes(tmp_path: Path) -> None:
    """Without a fault the same run passes, so that the failures below are those of the faults."""
    assert experiment.run_experiment(tmp_path, seeds=[11], scenarios=FULL)["status"] == "PASS"


@pytest.mark.parametrize("fault", RESTORES)
def test_restore_that_loses_something(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str) -> None:
    """A restore that loses a part of its component is caught."""
    name, restore = RESTORES[fault]
    patch_component(monkeypatch, name, restore=restore)

    run_fails(tmp_path)


@pytest.mark.parametrize("fault", AFTER_RESTORE)
def test_restore_that_spoils_something(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str) -> None:
    """A restore that gets a value wrong is caught, however little."""
    name, spoil = AFTER_RESTORE[fault]
    original = component(name).restore

    def restore(job: TrainingJob, held: Any) -> None:
        original(job, held)
        spoil(job)

    patch_component(monkeypatch, name, restore=restore)

    run_fails(tmp_path, FULL[1:] if name == "gradients" else FULL)


@pytest.mark.parametrize("name", [c.name for c in experiment.COMPONENTS])
def test_restore_that_does_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    """A component whose restore is skipped is caught."""
    patch_component(monkeypatch, name, restore=lambda _job, _held: None)

    run_fails(tmp_path)


@pytest.mark.parametrize("name", [c.name for c in experiment.COMPONENTS])
def test_component_missing_from_the_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    """A component that is missing from the table cannot be left out of checkpoints unnoticed."""
    monkeypatch.setattr(experiment, "COMPONENTS", tuple(c for c in experiment.COMPONENTS if c.name != name))

    with pytest.raises((ValueError, KeyError), match=name):
        experiment.run_experiment(tmp_path, seeds=[11], scenarios=FULL)


def test_new_row_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new row of the table is saved, restored and compared at once: a restore of it that does nothing is caught."""
    averages: dict[int, float] = {}  # a running average of the loss, by the job that keeps it

    def step(job: TrainingJob) -> bool:
        updated = run_one_microstep(job)
        averages[id(job)] = 0.9 * averages.get(id(job), 0.0) + job.last_loss
        return updated

    run_one_microstep = experiment.run_one_microstep
    monkeypatch.setattr(experiment, "run_one_microstep", step)
    row: experiment.Component[TrainingJob] = experiment.Component(
        "average",
        read=lambda job: averages.get(id(job), 0.0),
        check=lambda _job, _held: None,
        restore=lambda job, held: averages.update({id(job): held}),
    )
    careless = replace(row, restore=lambda job, _held: averages.update({id(job): 0.0}))
    table = experiment.COMPONENTS

    monkeypatch.setattr(experiment, "COMPONENTS", (*table, row))
    result = experiment.evaluate_scenario(11, "full_mid_accumulation")
    assert result["exact_resume"]
    assert "average" in result["payload_keys"]

    monkeypatch.setattr(experiment, "COMPONENTS", (*table, careless))
    assert not experiment.evaluate_scenario(11, "full_mid_accumulation")["exact_resume"]


@pytest.mark.parametrize("name", experiment.COUNTERS)
@pytest.mark.parametrize("amount", [1, -1])
def test_counter_saved_off_by_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, amount: int) -> None:
    """A counter that is saved wrongly is refused when it is loaded."""
    read = component("counters").read
    patch_component(monkeypatch, "counters", read=lambda job: read(job) | {name: read(job)[name] + amount})

    run_fails(tmp_path)


def test_absent_gradients_restored_as_zeros(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Zeros in place of absent gradients are caught, though the model trains on to the same bits."""

    def zeros(job: TrainingJob) -> None:
        for parameter in job.model.parameters():
            parameter.grad = torch.zeros_like(parameter)

    patch_component(monkeypatch, "gradients", when_absent=zeros)
    result = experiment.evaluate_scenario(11, "full_boundary")

    assert result["model_exact"]
    assert not result["exact_resume"]
    run_fails(tmp_path)


def test_comparison_that_sees_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A comparison that finds everything equal fails the run, because the omissions must show."""
    monkeypatch.setattr(experiment, "exact_nested_equal", lambda _left, _right: True)

    run_fails(tmp_path, experiment.SCENARIOS)
