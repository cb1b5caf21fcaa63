"""Does a training resumed from a checkpoint stay, bit for bit, the training that was never interrupted?

A tiny classifier is trained once without interruption. A second copy is interrupted and saved; a fresh third copy
loads the checkpoint, which may lack some parts on purpose, and trains to the end. The two are compared update by
update: a full checkpoint must resume exactly, and every omission must show.

    python experiment.py run --output-dir results                      # all 35 combinations, six files of results
    python experiment.py run --output-dir results --seeds 1 2 --scenarios omit_rng omit_stream
    python experiment.py one --seed 11 --scenario omit_rng             # one combination, as JSON
    python experiment.py inspect                                       # the fixture, and what a checkpoint holds
    python experiment.py matrix --seed 11                              # one seed, all scenarios
    python experiment.py trace --seed 11 --scenario omit_scheduler     # one combination, update by update

Exit status: 0 done, and every acceptance check passed; 1 an acceptance check failed, a training diverged, or an
artifact does not fit its schema, which is a bug; 2 bad input, or results that cannot be written; 128 + N ended by
signal N (130: Ctrl-C).
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from types import FrameType

# Kernels chosen by processor give other last bits on another processor, and both variables are read while torch is
# loaded, so they stand before its import. What the user has set stays. The third pin is AdamW's, in `make_job`.
NUMERIC_PINS = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE"}
if "torch" not in sys.modules:  # too late otherwise, and environment.json must not claim what is not in force
    for _name, _value in NUMERIC_PINS.items():
        os.environ.setdefault(_name, _value)


def complain(message: str) -> None:
    """Print one line on standard error, unless it is closed."""
    if sys.stderr is not None:
        print(f"experiment.py: {message}", file=sys.stderr)


def _exit_on_signal(number: int, _frame: FrameType | None) -> None:
    """Turn a signal into an orderly exit, so that what is half-done is cleaned up."""
    complain(f"ended by {signal.Signals(number).name}")
    atexit.register(os._exit, 128 + number)  # after the clean-up, in the place of torch's own slow farewell
    sys.exit(128 + number)


if __name__ == "__main__":  # before the slow imports, and for process 1 of a container, which has no default handlers
    for _signal in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(_signal) is not signal.SIG_IGN:  # a job in the background of a script ignores Ctrl-C
            signal.signal(_signal, _exit_on_signal)

import argparse
import contextlib
import csv
import fcntl
import functools
import hashlib
import io
import json
import math
import operator
import platform
import random
import re
import reprlib
import shutil
import statistics
import struct
import tempfile
import textwrap
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

import jsonschema
import numpy as np
import referencing.jsonschema
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.lr_scheduler import StepLR

__version__ = "1.0.0"

# ---------------------------------------------------------------------------------------------- configuration

SEEDS = (11, 17, 29, 47, 83)
MAX_SEED = 2**32 - 1  # NumPy's legacy generator takes no larger one

BOUNDARY = "optimizer_step_boundary"  # between two updates: no gradients are pending
MID_ACCUMULATION = "mid_accumulation"  # inside an accumulation window: the gradients so far are state


@dataclass(frozen=True)
class ExperimentConfig:
    """Sizes, rates and interruption points of the experiment.

    Raises:
        ValueError: a value is impossible; the message names the field, what it holds and what is wanted.
    """

    input_dim: int = 8
    hidden_dim: int = 16
    num_classes: int = 3
    num_examples: int = 48  # 12 micro-batches an epoch: 4 updates, so that the run crosses two epoch ends
    batch_size: int = 4
    accumulation_steps: int = 3  # micro-steps (backward passes) for each optimizer update
    total_optimizer_steps: int = 12
    boundary_interrupt_step: int = 5  # not a multiple of the epoch or of the scheduler's period
    mid_interrupt_completed_steps: int = 5
    mid_interrupt_microsteps: int = 1  # micro-steps into the window that follows the completed updates
    learning_rate: float = 0.03
    weight_decay: float = 0.01
    scheduler_step_size: int = 4  # updates between two decays of the learning rate
    scheduler_gamma: float = 0.7
    numpy_noise_std: float = 0.015  # drawn from NumPy's generator, so that losing its state shows
    python_scale_half_width: float = 0.05  # drawn from Python's generator, likewise
    dropout_probability: float = 0.35  # drawn from torch's generator, likewise
    dataset_seed: int = 20260717

    def __post_init__(self) -> None:
        """Refuse impossible values."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "int":
                self._require(field.name, type(value) is int, "an integer")
            else:
                number = isinstance(value, int | float) and not isinstance(value, bool)
                self._require(field.name, number and abs(value) <= sys.float_info.max, "a finite number")
                object.__setattr__(self, field.name, float(value))
                self._require(field.name, value >= 0, "a number that is not negative")
        sizes = ("input_dim", "hidden_dim", "num_classes", "num_examples", "batch_size")
        for name in (*sizes, "accumulation_steps", "total_optimizer_steps", "scheduler_step_size"):
            self._require(name, getattr(self, name) >= 1, "at least 1")
        self._require(
            "batch_size", self.num_examples % self.batch_size == 0, f"a divisor of {self.num_examples} examples"
        )
        self._require("dropout_probability", self.dropout_probability < 1, "a probability in [0, 1)")
        self._require("dataset_seed", 0 <= self.dataset_seed <= MAX_SEED, f"from 0 to {MAX_SEED}")
        total, window = self.total_optimizer_steps, self.accumulation_steps
        self._require("boundary_interrupt_step", 0 <= self.boundary_interrupt_step <= total, f"from 0 to {total}")
        completed, first = self.mid_interrupt_completed_steps, min(1, window - 1)
        self._require("mid_interrupt_completed_steps", 0 <= completed < total, f"from 0 to {total - 1}")
        self._require(
            "mid_interrupt_microsteps", first <= self.mid_interrupt_microsteps < window, f"from {first} to {window - 1}"
        )

    def _require(self, name: str, holds: object, wanted: str) -> None:
        if not holds:
            raise ValueError(f"{name} must be {wanted}, not {describe(getattr(self, name))}")

    @property
    def total_microsteps(self) -> int:
        """Micro-steps of the whole training."""
        return self.total_optimizer_steps * self.accumulation_steps

    @property
    def boundary_interrupt_microsteps(self) -> int:
        """Micro-steps before the interruption between two updates."""
        return self.boundary_interrupt_step * self.accumulation_steps

    @property
    def mid_interrupt_microstep_index(self) -> int:
        """Micro-steps before the interruption inside an accumulation window."""
        return self.mid_interrupt_completed_steps * self.accumulation_steps + self.mid_interrupt_microsteps


@dataclass(frozen=True)
class ScenarioSpec:
    """Where a scenario interrupts the training, and which components its checkpoint holds."""

    name: str
    checkpoint_position: str  # BOUNDARY or MID_ACCUMULATION
    include_model: bool = True
    include_optimizer: bool = True
    include_scheduler: bool = True
    include_rng: bool = True
    include_stream: bool = True
    include_counters: bool = True
    include_gradients: bool = False

    def __post_init__(self) -> None:
        """Refuse a position that is none of the two."""
        if self.checkpoint_position not in (BOUNDARY, MID_ACCUMULATION):
            raise ValueError(f"unknown checkpoint position {self.checkpoint_position!r}")

    @property
    def included(self) -> tuple[str, ...]:
        """Names of the components that the checkpoint holds, in the order of the fields above."""
        return tuple(name for name in COMPONENT_FIELDS if getattr(self, f"include_{name}"))

    @property
    def omitted(self) -> tuple[str, ...]:
        """Names of the components that are state at this position and that the checkpoint lacks."""
        position_has_gradients = self.checkpoint_position == MID_ACCUMULATION
        state = (
            COMPONENT_FIELDS if position_has_gradients else [name for name in COMPONENT_FIELDS if name != "gradients"]
        )
        return tuple(name for name in state if name not in self.included)

    @property
    def expected_exact(self) -> bool:
        """Whether the resumed training must be exact: nothing that matters was left out."""
        return not self.omitted


COMPONENT_FIELDS = tuple(
    field.name.removeprefix("include_") for field in fields(ScenarioSpec) if field.name.startswith("include_")
)

SPECS = {
    spec.name: spec
    for spec in (
        ScenarioSpec("full_boundary", BOUNDARY),
        ScenarioSpec(
            "model_optimizer_only",
            BOUNDARY,
            include_scheduler=False,
            include_rng=False,
            include_stream=False,
            include_counters=False,
        ),
        ScenarioSpec("omit_rng", BOUNDARY, include_rng=False),
        ScenarioSpec("omit_stream", BOUNDARY, include_stream=False),
        ScenarioSpec("omit_scheduler", BOUNDARY, include_scheduler=False),
        ScenarioSpec("full_mid_accumulation", MID_ACCUMULATION, include_gradients=True),
        ScenarioSpec("mid_without_gradients", MID_ACCUMULATION),
    )
}
SCENARIOS = tuple(SPECS)


def describe(value: object) -> str:
    """Say in a few words what a value is: a tensor's dtype and shape, a dict's size, else the value, shortened."""
    if isinstance(value, Tensor):
        kind = "tensor" if type(value) is Tensor else type(value).__name__
        where = (
            "" if (value.layout, value.device.type) == (torch.strided, "cpu") else f" ({value.layout}, {value.device})"
        )
        return f"{kind} of dtype {str(value.dtype).removeprefix('torch.')} and shape {tuple(value.shape)}{where}"
    if isinstance(value, dict):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, int) and abs(value) > sys.maxsize:
        return f"integer of {value.bit_length()} bits"
    return reprlib.repr(value)


def checked_seed(seed: object) -> int:
    """Return `seed` as an `int`.

    Raises:
        ValueError: it is no integer from 0 to 2**32 - 1.
    """
    try:
        number = operator.index(seed)  # type: ignore[arg-type]  # whether it is an index is the question
    except TypeError:
        number = -1
    if isinstance(seed, bool) or not 0 <= number <= MAX_SEED:
        raise ValueError(f"a seed must be an integer from 0 to {MAX_SEED}, not {describe(seed)}")
    return number


def checked_scenario(name: object) -> str:
    """Return `name` if it names a scenario.

    Raises:
        ValueError: it does not.
    """
    if not isinstance(name, str) or name not in SPECS:
        raise ValueError(f"unknown scenario {name!r} (choose from {', '.join(SCENARIOS)})")
    return name


Checked = TypeVar("Checked")


def checked_selection(kind: str, values: Iterable[object], check: Callable[[object], Checked]) -> tuple[Checked, ...]:
    """Read `values` once and return them, each checked.

    Raises:
        ValueError: there is none, one is repeated, or one does not pass `check`.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"{kind} must be a collection, not {values!r}")  # noqa: TRY004 -- bad input, as all the rest
    selection = tuple(check(value) for value in values)
    if not selection:
        raise ValueError(f"{kind} must not be empty")
    seen: set[Checked] = set()
    for value in selection:
        if value in seen:
            raise ValueError(f"{kind} must not repeat {value!r}")
        seen.add(value)
    return selection


# ---------------------------------------------------------------------------------------------------- fixture

FACTORY: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}  # whatever a host program made its defaults


class TrainingDivergedError(RuntimeError):
    """A loss or a parameter is not finite: names seed, micro-step and, once it is known, the scenario."""

    def __init__(self, seed: int, microstep: int, what: str, scenario: str | None = None) -> None:
        super().__init__(seed, microstep, what, scenario)
        self.seed, self.microstep, self.what, self.scenario = seed, microstep, what, scenario

    def __str__(self) -> str:
        place = f"seed={self.seed} scenario={self.scenario} microstep={self.microstep}"
        return f"training diverged: {place}: {self.what}"


def make_dataset(cfg: ExperimentConfig) -> tuple[Tensor, Tensor]:
    """Draw the examples and label them with a random linear teacher.

    Returns:
        `x`, float32 of shape (num_examples, input_dim), and `y`, int64 class indices of shape (num_examples,).
    """
    generator = torch.Generator().manual_seed(cfg.dataset_seed)
    x = torch.randn(cfg.num_examples, cfg.input_dim, generator=generator, **FACTORY)
    teacher = torch.randn(cfg.input_dim, cfg.num_classes, generator=generator, **FACTORY)
    bias = 0.2 * torch.randn(cfg.num_classes, generator=generator, **FACTORY)
    return x, (x @ teacher + bias).argmax(dim=1)


class TinyDropoutClassifier(nn.Module):
    """Linear, tanh, dropout, linear: (batch, input_dim) float32 to (batch, num_classes) logits."""

    def __init__(self, cfg: ExperimentConfig) -> None:
        super().__init__()
        self.input = nn.Linear(cfg.input_dim, cfg.hidden_dim, **FACTORY)
        self.dropout = nn.Dropout(cfg.dropout_probability)
        self.output = nn.Linear(cfg.hidden_dim, cfg.num_classes, **FACTORY)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, input_dim) float32 examples to (batch, num_classes) float32 logits."""
        logits: Tensor = self.output(self.dropout(torch.tanh(self.input(x))))
        return logits


class StatefulBatchStream:
    """An endless stream of shuffled batches whose place can be saved and restored.

    Args:
        x: examples, of shape (n, ...).
        y: labels, of shape (n, ...).
        order_seed: seed of the stream's own generator, which draws one permutation for each epoch.
        batch_size: examples in a batch.

    Raises:
        ValueError: `x` and `y` differ in length, or the length is not a multiple of the batch size.
    """

    def __init__(self, x: Tensor, y: Tensor, order_seed: int, batch_size: int) -> None:
        if len(x) != len(y):
            raise ValueError(f"x and y must have the same length, not {len(x)} and {len(y)}")
        if batch_size < 1 or len(x) == 0 or len(x) % batch_size:
            raise ValueError(f"the length {len(x)} must be a positive multiple of the batch size {batch_size}")
        self.x, self.y, self.batch_size = x, y, batch_size
        self.generator = torch.Generator().manual_seed(order_seed)
        self.epoch = 0
        self.cursor = 0
        self.order = torch.randperm(len(x), generator=self.generator)

    def next_batch(self) -> tuple[Tensor, Tensor, list[int]]:
        """Return copies of the next batch's examples and labels, and the examples' indices."""
        if self.cursor == len(self.x):
            self.epoch += 1
            self.cursor = 0
            self.order = torch.randperm(len(self.x), generator=self.generator)
        ids = self.order[self.cursor : self.cursor + self.batch_size]
        self.cursor += self.batch_size
        return self.x[ids], self.y[ids], ids.tolist()

    def peek_next_ids(self) -> list[int]:
        """Return the indices that `next_batch` will hand out, and leave the stream as it is."""
        order, cursor = self.order, self.cursor
        if cursor == len(self.x):
            generator = torch.Generator().set_state(self.generator.get_state())
            order, cursor = torch.randperm(len(self.x), generator=generator), 0
        ids: list[int] = order[cursor : cursor + self.batch_size].tolist()
        return ids

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the stream's place: three integers, int64 `order` (n,), uint8 `generator_state`."""
        return {
            "batch_size": self.batch_size,
            "epoch": self.epoch,
            "cursor": self.cursor,
            "order": self.order.clone(),
            "generator_state": self.generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take a copy of the place that `state_dict` returned.

        Raises:
            ValueError: the place was saved with another batch size.
        """
        if state["batch_size"] != self.batch_size:
            raise ValueError(f"the stream's batch size is {self.batch_size}, the saved one {state['batch_size']!r}")
        self.epoch, self.cursor = state["epoch"], state["cursor"]
        self.order = state["order"].clone()
        self.generator.set_state(state["generator_state"])


@dataclass
class TrainingJob:
    """Everything that a training consists of, but for the random generators of the process."""

    cfg: ExperimentConfig
    seed: int
    model: TinyDropoutClassifier
    optimizer: torch.optim.AdamW
    scheduler: StepLR
    stream: StatefulBatchStream
    optimizer_step: int = 0  # completed updates
    microstep_in_accumulation: int = 0  # micro-steps into the open window
    global_microstep: int = 0  # micro-steps since the start
    last_batch_ids: tuple[int, ...] = ()
    last_loss: float = math.nan  # of the last micro-step, not divided by the window


def configure_deterministic_cpu() -> None:
    """One intra-op thread (a sum's order is then fixed), and deterministic algorithms only."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)


def seed_all(seed: int) -> None:
    """Seed the three generators of the process: Python's, NumPy's legacy one and torch's for the CPU."""
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)  # `torch.manual_seed` would also queue a seeding of each accelerator


def make_job(seed: int, cfg: ExperimentConfig | None = None) -> TrainingJob:
    """Build a job from scratch; the process generators are seeded and then drawn from by the model.

    Raises:
        ValueError: the seed is no integer from 0 to 2**32 - 1.
    """
    seed = checked_seed(seed)
    cfg = cfg or ExperimentConfig()
    configure_deterministic_cpu()
    seed_all(seed)
    x, y = make_dataset(cfg)
    model = TinyDropoutClassifier(cfg)
    # Fused: the third numeric pin. The default AdamW takes its square roots from MKL's vector library, which misrounds
    # them differently on each vendor's processors; the fused kernel uses the IEEE-754 square root.
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.learning_rate, weight_decay=cfg.weight_decay, fused=True)
    scheduler = StepLR(optimizer, step_size=cfg.scheduler_step_size, gamma=cfg.scheduler_gamma)
    stream = StatefulBatchStream(x, y, seed + 10_000, cfg.batch_size)
    return TrainingJob(cfg, seed, model, optimizer, scheduler, stream)


def learning_rate(job: TrainingJob) -> float:
    """Return the learning rate of the next update."""
    return float(job.optimizer.param_groups[0]["lr"])


def run_one_microstep(job: TrainingJob) -> bool:
    """Run one forward and backward pass, and the update that is due when the accumulation window is full.

    Draws, in this order, from the stream, Python's generator, NumPy's and torch's (dropout).

    Returns:
        Whether an update was made.

    Raises:
        TrainingDivergedError: the loss is not finite.
    """
    cfg = job.cfg
    x, y, ids = job.stream.next_batch()
    scale = 1.0 + (2.0 * random.random() - 1.0) * cfg.python_scale_half_width
    noise = torch.from_numpy(np.random.normal(0.0, cfg.numpy_noise_std, size=x.shape).astype(np.float32))
    loss = functional.cross_entropy(job.model(x * scale + noise), y)
    job.last_batch_ids, job.last_loss = tuple(ids), loss.item()
    if not math.isfinite(job.last_loss):
        raise TrainingDivergedError(job.seed, job.global_microstep + 1, f"the loss is {job.last_loss}")
    (loss / cfg.accumulation_steps).backward()  # type: ignore[no-untyped-call]  # untyped in torch
    job.microstep_in_accumulation += 1
    job.global_microstep += 1
    if job.microstep_in_accumulation < cfg.accumulation_steps:
        return False
    job.optimizer.step()
    job.scheduler.step()
    job.optimizer.zero_grad(set_to_none=True)
    job.optimizer_step += 1
    job.microstep_in_accumulation = 0
    return True


StepCallback = Callable[[TrainingJob], None]


def run_until_microstep(
    job: TrainingJob, target_global_microstep: int, on_optimizer_step: StepCallback | None = None
) -> None:
    """Train until the job has run that many micro-steps; the callback gets the job after each update.

    Raises:
        ValueError: the job is already past the target.
    """
    if target_global_microstep < job.global_microstep:
        raise ValueError(
            f"micro-step {target_global_microstep} lies behind the job, which is at {job.global_microstep}"
        )
    while job.global_microstep < target_global_microstep:
        if run_one_microstep(job) and on_optimizer_step:
            on_optimizer_step(job)


def run_until_optimizer_step(
    job: TrainingJob, target_optimizer_step: int, on_optimizer_step: StepCallback | None = None
) -> None:
    """Train until the job has made that many updates; the callback gets the job after each one.

    Raises:
        ValueError: the job is already past the target.
    """
    if target_optimizer_step < job.optimizer_step:
        raise ValueError(f"update {target_optimizer_step} lies behind the job, which is at {job.optimizer_step}")
    while job.optimizer_step < target_optimizer_step:
        if run_one_microstep(job) and on_optimizer_step:
            on_optimizer_step(job)


def interrupt_job(seed: int, cfg: ExperimentConfig, position: str) -> TrainingJob:
    """Train a new job to the configured interruption.

    Raises:
        ValueError: `position` is none of the two, or the accumulation window has no inside.
    """
    targets = {BOUNDARY: cfg.boundary_interrupt_microsteps, MID_ACCUMULATION: cfg.mid_interrupt_microstep_index}
    if position not in targets:
        raise ValueError(f"unknown checkpoint position {position!r} (choose from {', '.join(targets)})")
    if position == MID_ACCUMULATION and cfg.accumulation_steps == 1:
        raise ValueError(
            "accumulation_steps must be at least 2 for an interruption inside an accumulation window, not 1"
        )
    job = make_job(seed, cfg)
    run_until_microstep(job, targets[position])
    return job


# ---------------------------------------------------------------------------------- components and checkpoint

SCHEMA_VERSION = 1
COUNTERS = ("optimizer_step", "microstep_in_accumulation", "global_microstep")


class CheckpointError(ValueError):
    """A payload does not fit the job: names the field, what it held and what was wanted."""

    def __init__(self, field: str, held: str, wanted: str) -> None:
        super().__init__(field, held, wanted)
        self.field, self.held, self.wanted = field, held, wanted

    def __str__(self) -> str:
        return f"checkpoint field {self.field}: holds {self.held}, wanted {self.wanted}"


def require_form(field: str, held: object, like: object) -> None:
    """Compare types, keys, lengths, dtypes and shapes of `held` with those of `like`, all the way down; not values.

    Raises:
        CheckpointError: at the first place that differs.
    """
    if type(held) is not type(like):
        wanted = describe(like) if isinstance(like, Tensor) or like is None else type(like).__name__
        raise CheckpointError(field, describe(held), wanted)
    if isinstance(held, Tensor) and isinstance(like, Tensor):
        if (held.dtype, held.shape, held.layout, held.device) != (like.dtype, like.shape, like.layout, like.device):
            raise CheckpointError(field, describe(held), describe(like))
    elif isinstance(held, dict) and isinstance(like, dict):
        require_keys(field, held, like)
        for key, item in like.items():
            require_form(f"{field}.{key}", held[key], item)
    elif isinstance(held, list | tuple) and isinstance(like, list | tuple):
        if len(held) != len(like):
            raise CheckpointError(field, describe(held), describe(like))
        for index, (item, item_like) in enumerate(zip(held, like, strict=True)):
            require_form(f"{field}[{index}]", item, item_like)


def require_keys(field: str, held: object, wanted: Iterable[object]) -> None:
    """Compare the keys of a mapping with those wanted.

    Raises:
        CheckpointError: `held` is no dict, or a key is missing or not known.
    """
    if type(held) is not dict:
        raise CheckpointError(field, describe(held), "dict")
    names = {(type(key), key) for key in wanted}
    for _, key in names - {(type(key), key) for key in held}:
        raise CheckpointError(f"{field}.{key}", "nothing", "an entry")
    for key in held:
        if (type(key), key) not in names:
            raise CheckpointError(f"{field}.{key}", "an entry", "nothing of that name")


def require_range(field: str, held: object, low: int, high: float = math.inf) -> None:
    """Require an integer from `low` to `high`.

    Raises:
        CheckpointError: it is none.
    """
    if type(held) is not int or not low <= held <= high:
        raise CheckpointError(
            field,
            describe(held),
            f"an integer of at least {low}" if high == math.inf else f"an integer from {low} to {high}",
        )


def require_rate(field: str, held: float) -> None:
    """Require a learning rate: a finite number that is not negative.

    Raises:
        CheckpointError: it is none.
    """
    if not 0 <= held < math.inf:
        raise CheckpointError(field, describe(held), "a finite rate that is not negative")


def require_equal(field: str, held: object, wanted: object) -> None:
    """Require a setting to be the job's own.

    Raises:
        CheckpointError: it is another.
    """
    require_form(field, held, wanted)
    if held != wanted:
        raise CheckpointError(field, describe(held), describe(wanted))


def copied(value: Any) -> Any:
    """Copy nested dicts, lists, tuples and tensors, so that the copy shares no memory with the original."""
    if isinstance(value, Tensor):
        return value.detach().clone(memory_format=torch.contiguous_format)  # fused kernels trust the layout
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(copied(item) for item in value)
    return value


def read_model(job: TrainingJob) -> dict[str, Tensor]:
    """Return a copy of the model's parameters and buffers by name."""
    state: dict[str, Tensor] = copied(job.model.state_dict())
    return state


def check_model(job: TrainingJob, held: object) -> None:
    """Refuse another set of names, shapes or dtypes."""
    require_form("model", held, dict(job.model.state_dict()))


def restore_model(job: TrainingJob, held: Any) -> None:
    """Copy the values into the model's own tensors."""
    job.model.load_state_dict(held)


def read_optimizer(job: TrainingJob) -> dict[str, Any]:
    """Return a copy of AdamW's moments and step counts by parameter number, and of its parameter groups."""
    state: dict[str, Any] = copied(job.optimizer.state_dict())
    return state


def check_optimizer(job: TrainingJob, held: object) -> None:
    """Refuse other groups or settings, and moments that do not fit the parameters: all of them, or none yet."""
    require_keys("optimizer", held, ("state", "param_groups"))
    assert isinstance(held, dict)  # for the type checker; `require_keys` has made sure
    groups = job.optimizer.state_dict()["param_groups"]
    require_form("optimizer.param_groups", held["param_groups"], groups)
    for index, (group, own) in enumerate(zip(held["param_groups"], groups, strict=True)):
        for key in own.keys() - {"lr"}:  # the one setting that training changes
            require_equal(f"optimizer.param_groups[{index}].{key}", group[key], own[key])
        require_rate(f"optimizer.param_groups[{index}].lr", group["lr"])
    moments = {
        number: {"step": torch.zeros((), **FACTORY), "exp_avg": p.detach(), "exp_avg_sq": p.detach()}
        for number, p in enumerate(job.model.parameters())
    }
    require_form("optimizer.state", held["state"], moments if held["state"] else {})


def restore_optimizer(job: TrainingJob, held: Any) -> None:
    """Give the optimizer the state; it may keep the tensors."""
    job.optimizer.load_state_dict(held)


def read_scheduler(job: TrainingJob) -> dict[str, Any]:
    """Return a copy of StepLR's settings and place."""
    state: dict[str, Any] = copied(job.scheduler.state_dict())
    return state


def check_scheduler(job: TrainingJob, held: object) -> None:
    """Refuse another schedule, or a place that is none."""
    own = job.scheduler.state_dict()
    require_form("scheduler", held, own)
    assert isinstance(held, dict)  # for the type checker; `require_form` has made sure
    for key in ("step_size", "gamma", "base_lrs"):
        require_equal(f"scheduler.{key}", held[key], own[key])
    require_range("scheduler.last_epoch", held["last_epoch"], 0)
    require_range("scheduler._step_count", held["_step_count"], 0)
    for index, rate in enumerate(held["_last_lr"]):
        require_rate(f"scheduler._last_lr[{index}]", rate)


def restore_scheduler(job: TrainingJob, held: Any) -> None:
    """Give the scheduler its place; the optimizer's learning rate is left alone."""
    job.scheduler.load_state_dict(held)


def read_stream(job: TrainingJob) -> dict[str, Any]:
    """Return a copy of the stream's place."""
    return job.stream.state_dict()


def check_stream(job: TrainingJob, held: object) -> None:
    """Refuse another batch size, an order that is no permutation, a cursor where no batch begins."""
    require_form("stream", held, read_stream(job))
    assert isinstance(held, dict)  # for the type checker; `require_form` has made sure
    length, batch_size = len(job.stream.x), job.stream.batch_size
    require_equal("stream.batch_size", held["batch_size"], batch_size)
    require_range("stream.epoch", held["epoch"], 0)
    require_range("stream.cursor", held["cursor"], 0, length)
    if held["cursor"] % batch_size:
        raise CheckpointError("stream.cursor", describe(held["cursor"]), f"a multiple of the batch size {batch_size}")
    if not torch.equal(held["order"].sort().values, torch.arange(length)):
        raise CheckpointError("stream.order", describe(held["order"].tolist()), f"a permutation of 0 to {length - 1}")
    require_generator_state("stream.generator_state", held["generator_state"])


def require_generator_state(field: str, held: Tensor) -> None:
    """Require a state that a torch generator takes.

    Raises:
        CheckpointError: it refuses it.
    """
    try:
        torch.Generator().set_state(held)
    except RuntimeError:
        raise CheckpointError(field, f"a {describe(held)} that no generator takes", "a generator's state") from None


def restore_stream(job: TrainingJob, held: Any) -> None:
    """Put the stream where it was."""
    job.stream.load_state_dict(held)


def read_counters(job: TrainingJob) -> dict[str, int]:
    """Return the job's three counters by name."""
    return {name: getattr(job, name) for name in COUNTERS}


def check_counters(job: TrainingJob, held: object) -> None:
    """Refuse counters outside the training, or that do not belong together."""
    require_keys("counters", held, COUNTERS)
    assert isinstance(held, dict)  # for the type checker; `require_keys` has made sure
    window = job.cfg.accumulation_steps
    require_range("counters.optimizer_step", held["optimizer_step"], 0, job.cfg.total_optimizer_steps)
    require_range("counters.microstep_in_accumulation", held["microstep_in_accumulation"], 0, window - 1)
    together = held["optimizer_step"] * window + held["microstep_in_accumulation"]
    require_equal("counters.global_microstep", held["global_microstep"], together)


def restore_counters(job: TrainingJob, held: Any) -> None:
    """Set the job's three counters."""
    for name in COUNTERS:
        setattr(job, name, held[name])


def capture_gradients(model: nn.Module) -> dict[str, Tensor | None]:
    """Return a copy of each parameter's gradient by name; `None`, which is not a zero gradient, where there is none."""
    return {name: copied(p.grad) for name, p in model.named_parameters()}


def check_gradients(model: nn.Module, held: object) -> None:
    """Refuse other names, and gradients that do not fit their parameters.

    Raises:
        CheckpointError: names the first that does not fit.
    """
    require_keys("gradients", held, (name for name, _ in model.named_parameters()))
    assert isinstance(held, dict)  # for the type checker; `require_keys` has made sure
    for name, parameter in model.named_parameters():
        if held[name] is not None:
            require_form(f"gradients.{name}", held[name], parameter.detach())


def restore_gradients(model: nn.Module, gradients: Mapping[str, Tensor | None]) -> None:
    """Set each parameter's gradient to a copy of the one captured.

    Raises:
        CheckpointError: (a `ValueError`) the names are not the model's, or a gradient does not fit its parameter.
    """
    check_gradients(model, gradients)
    for name, parameter in model.named_parameters():
        parameter.grad = copied(gradients[name])


def drop_gradients(job: TrainingJob) -> None:
    """Leave every parameter without a gradient."""
    job.optimizer.zero_grad(set_to_none=True)


def capture_rng_state() -> dict[str, Any]:
    """Return the state of the process generators, of tensors and plain values that load without pickle code.

    `python`: version, int64 `words` (625,), `gauss_next`. `numpy`: uint32 `key` (624,), `pos`, `has_gauss`, `gauss`
    and the generator's name. `torch_cpu`: uint8 tensor.

    Raises:
        ValueError: a host program has put another kind of generator in the place of NumPy's.
    """
    version, words, gauss_next = random.getstate()
    legacy: Any = np.random.get_state(legacy=False)
    if legacy["bit_generator"] != "MT19937":
        raise ValueError(f"NumPy's global generator is {legacy['bit_generator']}, not the MT19937 that it starts with")
    return {
        "python": {
            "version": version,
            "words": torch.from_numpy(np.fromiter(words, dtype=np.int64)),
            "gauss_next": gauss_next,
        },
        "numpy": {
            "bit_generator": legacy["bit_generator"],
            "key": torch.from_numpy(legacy["state"]["key"].copy()),
            "pos": int(legacy["state"]["pos"]),
            "has_gauss": int(legacy["has_gauss"]),
            "gauss": float(legacy["gauss"]),
        },
        "torch_cpu": torch.get_rng_state(),
    }


def python_state(held: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what `random.setstate` wants, from what `capture_rng_state` keeps of it."""
    return held["version"], tuple(held["words"].tolist()), held["gauss_next"]


@functools.cache
def rng_form() -> dict[str, Any]:
    """Return some state of the process generators, for its types, names and shapes, which never change."""
    return capture_rng_state()


def check_rng(_job: TrainingJob, held: object) -> None:
    """Refuse a missing generator, and a state that its kind of generator does not take."""
    own = rng_form()
    require_keys("rng", held, own)
    assert isinstance(held, dict)  # for the type checker; `require_keys` has made sure
    require_keys("rng.python", held["python"], own["python"])
    gauss_next = held["python"]["gauss_next"]
    if gauss_next is not None:
        require_form("rng.python.gauss_next", gauss_next, 0.0)
    require_form("rng", held, own | {"python": own["python"] | {"gauss_next": gauss_next}})
    require_equal("rng.python.version", held["python"]["version"], own["python"]["version"])
    trial = random.Random()
    try:
        trial.setstate(python_state(held["python"]))
        taken = trial.getstate() == python_state(held["python"])  # it takes words modulo 2**32
    except (ValueError, TypeError, OverflowError):
        taken = False
    if not taken:
        raise CheckpointError("rng.python", "a state that no generator takes", "a generator's state")
    require_equal("rng.numpy.bit_generator", held["numpy"]["bit_generator"], own["numpy"]["bit_generator"])
    require_range("rng.numpy.pos", held["numpy"]["pos"], 0, len(own["numpy"]["key"]))
    require_range("rng.numpy.has_gauss", held["numpy"]["has_gauss"], 0, 1)
    require_generator_state("rng.torch_cpu", held["torch_cpu"])


def restore_rng_state(state: Mapping[str, Any]) -> None:
    """Set the process generators to a state that `capture_rng_state` returned."""
    legacy = state["numpy"]
    random.setstate(python_state(state["python"]))
    np.random.set_state(
        (legacy["bit_generator"], legacy["key"].numpy(), legacy["pos"], legacy["has_gauss"], legacy["gauss"])
    )
    torch.set_rng_state(state["torch_cpu"])


Job = TypeVar("Job")


@dataclass(frozen=True)
class Component(Generic[Job]):
    """One kind of state of any kind of job: how to read it, check what a payload holds of it, and restore it."""

    name: str
    read: Callable[[Job], Any]  # returns a copy that shares no memory with the job
    check: Callable[[Job, object], None]  # raises CheckpointError, changes nothing
    restore: Callable[[Job, Any], None]  # may keep what it is given
    when_absent: Callable[[Job], None] = lambda _job: None


# In the order of restoring: the process generators last, because building and loading objects may draw from them. A new
# row is saved, restored and compared from then on; a switch in `ScenarioSpec` is what lets a scenario leave it out.
COMPONENTS: tuple[Component[TrainingJob], ...] = (
    Component("model", read_model, check_model, restore_model),
    Component("optimizer", read_optimizer, check_optimizer, restore_optimizer),
    Component("scheduler", read_scheduler, check_scheduler, restore_scheduler),
    Component("stream", read_stream, check_stream, restore_stream),
    Component("counters", read_counters, check_counters, restore_counters),
    Component(
        "gradients",
        read=lambda job: capture_gradients(job.model),
        check=lambda job, held: check_gradients(job.model, held),
        restore=lambda job, held: restore_gradients(job.model, held),
        when_absent=drop_gradients,
    ),
    Component("rng", lambda _job: capture_rng_state(), check_rng, lambda _job, held: restore_rng_state(held)),
)


def save_checkpoint(job: TrainingJob, spec: ScenarioSpec) -> dict[str, Any]:
    """Return a payload with the components that the spec includes; it shares no memory with the job.

    Raises:
        ValueError: the spec is one for the boundary between updates and would lose the gradients of an open
            accumulation window, or it includes a component that the table does not have.
    """
    window_open = job.microstep_in_accumulation > 0
    if window_open and spec.checkpoint_position == BOUNDARY and not spec.include_gradients:
        raise ValueError(
            f"{spec.name} saves no gradients, but the job is {job.microstep_in_accumulation} micro-step(s) into an "
            f"accumulation window of {job.cfg.accumulation_steps}"
        )
    table = {component.name: component for component in COMPONENTS}
    for name in spec.included:
        if name not in table:
            raise ValueError(f"{spec.name} includes {name}, which the table of components lacks")
    header = {"schema_version": SCHEMA_VERSION, "scenario": spec.name, "config": asdict(job.cfg)}
    without_switch = [name for name in table if name not in COMPONENT_FIELDS]
    return header | {name: table[name].read(job) for name in (*spec.included, *without_switch)}


def load_checkpoint(job: TrainingJob, payload: Mapping[str, Any]) -> None:
    """Restore what the payload has into a freshly made job; the job shares no memory with the payload.

    Raises:
        CheckpointError: the payload does not fit; job and process generators are then as they were.
    """
    present = [component for component in COMPONENTS if isinstance(payload, dict) and component.name in payload]
    header = ("schema_version", "scenario", "config")
    require_keys("payload", payload, (*header, *(component.name for component in present)))
    require_equal("schema_version", payload["schema_version"], SCHEMA_VERSION)
    require_form("scenario", payload["scenario"], "")
    require_form("config", payload["config"], asdict(job.cfg))
    for name, wanted in asdict(job.cfg).items():
        require_equal(f"config.{name}", payload["config"][name], wanted)
    for component in present:
        component.check(job, payload[component.name])
    for component in COMPONENTS:
        if component in present:
            component.restore(job, copied(payload[component.name]))
        else:
            component.when_absent(job)


def checkpoint_bytes(payload: Mapping[str, Any]) -> bytes:
    """Serialise a payload as `torch.save` does."""
    buffer = io.BytesIO()
    torch.save(payload, buffer)
    return buffer.getvalue()


def checkpoint_from_bytes(data: bytes) -> dict[str, Any]:
    """Read a payload back; no pickle code is run.

    Raises:
        CheckpointError: the bytes are no checkpoint, or would need pickle code to load.
    """
    try:
        payload: dict[str, Any] = torch.load(io.BytesIO(data), weights_only=True)
    except Exception as error:  # noqa: BLE001 -- zip, pickle and storage errors of many classes mean the same here
        reason = str(error).partition("\n")[0]
        raise CheckpointError("payload", f"bytes that do not load ({reason})", "a checkpoint") from None
    return payload


# ------------------------------------------------------------------------------------------------- comparison


Emit = Callable[[bytes], object]


def canonical_bytes(value: object) -> bytes:
    """Encode nested state so that two values are equal exactly when their encodings are.

    The encoding holds the type, a tensor's or array's dtype, shape and raw bytes, the kind of a container, and each key
    with its type; the order of a dict does not count. So 0.0 differs from -0.0, 1 from 1.0 and True, a list from a
    tuple, and a NaN equals itself. A `Parameter` is encoded as the tensor that it is.

    Raises:
        TypeError: a type that is not known, a tensor that is not dense or not on the CPU.
    """
    parts: list[bytes] = []
    encode(value, parts.append)
    return b"".join(parts)


def encode(value: object, emit: Emit) -> None:
    """Emit a value's type and size, then what is in it; no encoding is the beginning of another."""
    kind = type(value)
    encoder = ENCODERS.get(kind)
    if encoder is None:
        if not isinstance(value, np.generic):
            raise TypeError(f"cannot encode a value of type {kind.__module__}.{kind.__qualname__}")
        encoder = ENCODERS[np.ndarray]
    encoder(kind.__name__, value, emit)


def encode_leaf(tag: str, content: bytes, emit: Emit) -> None:
    """Emit bytes behind their number."""
    emit(f"{tag} {len(content)}:".encode())
    emit(content)


# NumPy reads these as they are; of the rest, such as bfloat16, it reads the bytes.
NUMPY_DTYPES = {
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128),
}


def require_dense(tensor: Tensor) -> None:
    """Require a dense tensor on the CPU.

    Raises:
        TypeError: it is sparse, quantized or on another device.
    """
    if tensor.layout is not torch.strided or not tensor.is_cpu or tensor.is_quantized:
        raise TypeError(f"cannot encode a tensor of layout {tensor.layout}, dtype {tensor.dtype} on {tensor.device}")


def encode_tensor(_kind: str, tensor: Tensor, emit: Emit) -> None:
    """Emit a dense CPU tensor's dtype, shape, and the bytes of its elements in row-major order.

    Raises:
        TypeError: the tensor is sparse, quantized or on another device.
    """
    require_dense(tensor)
    readable = tensor if tensor.dtype in NUMPY_DTYPES else tensor.detach().ravel().view(torch.uint8)
    encode_leaf(f"Tensor {tensor.dtype} {tuple(tensor.shape)}", readable.numpy(force=True).tobytes(), emit)


def encode_array(kind: str, values: np.ndarray[Any, Any] | np.generic, emit: Emit) -> None:
    """Emit a NumPy array's or scalar's dtype, shape, and the bytes of its elements in row-major order.

    Raises:
        TypeError: the elements are objects or records, or long doubles, whose padding holds anything.
    """
    if values.dtype.kind not in "biufcSU" or values.dtype.char in "gG":
        raise TypeError(f"cannot encode a NumPy value of dtype {values.dtype}")
    encode_leaf(f"{kind} {values.dtype.str} {values.shape}", values.tobytes(), emit)


def encode_dict(kind: str, items: Mapping[object, object], emit: Emit) -> None:
    """Emit keys and values in the order of the encoded keys."""
    emit(f"{kind} {len(items)}:".encode())
    for key, item in sorted(((canonical_bytes(key), item) for key, item in items.items()), key=operator.itemgetter(0)):
        emit(key)
        encode(item, emit)


def encode_sequence(kind: str, items: Sequence[object], emit: Emit) -> None:
    """Emit the items of a list or tuple."""
    emit(f"{kind} {len(items)}:".encode())
    for item in items:
        encode(item, emit)


ENCODERS: dict[type, Callable[[str, Any, Emit], None]] = {
    Tensor: encode_tensor,
    nn.Parameter: encode_tensor,
    np.ndarray: encode_array,
    dict: encode_dict,
    OrderedDict: encode_dict,
    list: encode_sequence,
    tuple: encode_sequence,
    type(None): lambda kind, _none, emit: encode_leaf(kind, b"", emit),
    bool: lambda kind, value, emit: encode_leaf(kind, bytes([value]), emit),
    int: lambda kind, value, emit: encode_leaf(kind, hex(value).encode(), emit),
    float: lambda kind, value, emit: encode_leaf(kind, struct.pack(">d", value), emit),
    complex: lambda kind, value, emit: encode_leaf(kind, struct.pack(">dd", value.real, value.imag), emit),
    str: lambda kind, value, emit: encode_leaf(kind, value.encode("utf-8", "surrogatepass"), emit),
    bytes: encode_leaf,
}


def sha256(value: object) -> str:
    """Return the SHA-256 of the canonical encoding, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    encode(value, digest.update)
    return digest.hexdigest()


def tensor_sha256(tensor: Tensor) -> str:
    """Return the SHA-256 of a tensor's canonical encoding (dtype, shape, raw bytes)."""
    return sha256(tensor)


def model_hash(model: nn.Module) -> str:
    """Return the SHA-256 of the canonical encoding of the state dict, whose names are encoded in sorted order."""
    return sha256(dict(model.state_dict()))


def model_vector(model: nn.Module) -> Tensor:
    """Return a copy of all parameters, flat, of shape (number of parameters,)."""
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


def exact_nested_equal(left: object, right: object) -> bool:
    """Return whether two nested values are equal in every bit of their canonical encoding.

    Raises:
        TypeError: as `canonical_bytes`.
    """
    return canonical_bytes(left) == canonical_bytes(right)


def nested_tensor_items(value: object, prefix: str = "") -> list[tuple[str, Tensor]]:
    """List the tensors in a nested value with their paths, such as `state.0.exp_avg` and `a[1]`."""
    if isinstance(value, Tensor):
        return [(prefix, value)]
    children: list[tuple[str, object]] = []
    if isinstance(value, dict):
        dot = "." if prefix else ""
        children = [(f"{prefix}{dot}{key}", value[key]) for key in sorted(value, key=str)]
    elif isinstance(value, list | tuple):
        children = [(f"{prefix}[{index}]", item) for index, item in enumerate(value)]
    return [item for path, child in children for item in nested_tensor_items(child, path)]


def max_nested_tensor_error(left: object, right: object) -> float:
    """Return the largest absolute difference between two nested values.

    Numbers outside tensors are measured like tensors of one element. `inf` says that there is no such measure: another
    structure, type, shape or dtype, a NaN on one side only, unlike infinities, or other leaves that are not equal.

    Raises:
        TypeError: as `canonical_bytes`, for leaves that are neither tensors nor numbers.
    """
    kind = type(left)
    known = kind in ENCODERS
    if known and isinstance(left, Tensor) and isinstance(right, Tensor) and type(right) in ENCODERS:
        like = (left.dtype, left.shape) == (right.dtype, right.shape)
        return array_error(numeric_array(left), numeric_array(right)) if like else math.inf
    if kind is not type(right):
        return math.inf
    if isinstance(left, dict) and isinstance(right, dict) and known:
        left, right = ({canonical_bytes(key): item for key, item in side.items()} for side in (left, right))
        like = left.keys() == right.keys()
        return max((max_nested_tensor_error(left[key], right[key]) for key in left), default=0.0) if like else math.inf
    if isinstance(left, list | tuple) and isinstance(right, list | tuple) and known:
        like = len(left) == len(right)
        return max(map(max_nested_tensor_error, left, right), default=0.0) if like else math.inf
    if known and isinstance(left, int | float | complex):
        return array_error(np.asarray([left]), np.asarray([right]))
    return 0.0 if exact_nested_equal(left, right) else math.inf


def numeric_array(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return a tensor's values as an array that holds each of them exactly: float64, complex128 or integers.

    Raises:
        TypeError: the tensor is sparse, quantized or on another device.
    """
    require_dense(tensor)
    if tensor.dtype.is_floating_point:
        tensor = tensor.to(torch.float64)
    elif tensor.dtype.is_complex:
        tensor = tensor.to(torch.complex128)
    return tensor.numpy(force=True)


def array_error(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> float:
    """Return the largest absolute difference of two arrays of one shape and dtype, 0.0 where there is no element."""
    if left.dtype.kind == "c":
        parts = [part_errors(left.real, right.real), part_errors(left.imag, right.imag)]
        with np.errstate(over="ignore"):
            return float(np.hypot(*parts).max(initial=0.0))
    if left.dtype.kind == "f":
        return float(part_errors(left, right).max(initial=0.0))
    differing = left != right
    return integer_error(zip(left[differing].tolist(), right[differing].tolist(), strict=True))


def part_errors(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return absolute differences of float64 values: 0 for two NaNs or like infinities, `inf` for one NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.asarray(np.abs(left - right))
    if not np.isfinite(errors).all():
        errors[(left == right) | (np.isnan(left) & np.isnan(right))] = 0.0
        errors[np.isnan(left) ^ np.isnan(right)] = math.inf
    return errors


def integer_error(pairs: Iterable[tuple[int, int]]) -> float:
    """Return the largest absolute difference, subtracted as exact integers."""
    difference = max((abs(left - right) for left, right in pairs), default=0)
    try:
        return float(difference)
    except OverflowError:
        return math.inf


# The columns of results.csv, in their order. The counters have none; `nothing_differs` asks for them too.
COMPARED_COMPONENTS = ("model", "optimizer", "scheduler", "stream", "rng", "gradients")
EXACT_FIELDS = (*(f"{name}_exact" for name in COMPARED_COMPONENTS), "next_batch_match")
ERROR_FIELDS = ("max_parameter_abs_error", "max_optimizer_tensor_abs_error", "learning_rate_error")


def snapshot(job: TrainingJob) -> dict[str, Any]:
    """Return a copy of the job's complete state, and what is derived from it for comparisons.

    The three counters; the other components by name; `model_vector`, `model_hash`, `next_batch_ids`,
    `learning_rate`, `last_batch_ids` and `last_loss`.
    """
    components = {component.name: component.read(job) for component in COMPONENTS}
    counters = components.pop("counters")
    return {
        **counters,
        **components,
        "model_vector": model_vector(job.model),
        "model_hash": sha256(components["model"]),
        "next_batch_ids": job.stream.peek_next_ids(),
        "learning_rate": learning_rate(job),
        "last_batch_ids": list(job.last_batch_ids),
        "last_loss": job.last_loss,
    }


def compare_snapshots(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    """Return seven booleans, bit for bit, and three absolute errors."""
    exact = {f"{name}_exact": exact_nested_equal(actual[name], expected[name]) for name in COMPARED_COMPONENTS}
    return exact | {
        "next_batch_match": actual["next_batch_ids"] == expected["next_batch_ids"],
        "max_parameter_abs_error": max_nested_tensor_error(actual["model_vector"], expected["model_vector"]),
        "max_optimizer_tensor_abs_error": max_nested_tensor_error(
            actual["optimizer"]["state"], expected["optimizer"]["state"]
        ),
        "learning_rate_error": max_nested_tensor_error(actual["learning_rate"], expected["learning_rate"]),
    }


def nothing_differs(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Return whether two snapshots agree in every component of the table, and in the next batch."""
    components = [component.name for component in COMPONENTS if component.name != "counters"]
    names = (*components, *COUNTERS, "next_batch_ids")
    return all(exact_nested_equal(actual[name], expected[name]) for name in names)


# ------------------------------------------------------------------------------------------- differential run


PROCESS_STATE = threading.RLock()  # one experiment at a time: all threads of a process share its generators


@contextlib.contextmanager
def isolated_process() -> Iterator[None]:
    """Work as in a new process, and give back the caller's generators, threads, determinism, modes and device.

    Another thread that wants the same waits; one that draws from the process generators meanwhile spoils the numbers.
    """
    with PROCESS_STATE, isolated_state():
        yield


@contextlib.contextmanager
def isolated_state() -> Iterator[None]:
    """Do what `isolated_process` says, for the thread that holds the lock."""
    rng, threads = capture_rng_state(), torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    on_cpu = torch.get_default_device().type == "cpu"  # a device context slows every call of torch
    device = contextlib.nullcontext() if on_cpu else torch.device("cpu")
    try:
        with device, torch.inference_mode(mode=False), torch.enable_grad(), torch.autocast("cpu", enabled=False):
            yield
    finally:
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        torch.set_num_threads(threads)
        restore_rng_state(rng)


def make_uninterrupted_reference(seed: int, cfg: ExperimentConfig) -> dict[int, dict[str, Any]]:
    """Train without interruption; return a snapshot for each number of completed updates, 0 to the last."""
    job = make_job(seed, cfg)
    reference = {0: snapshot(job)}

    def record(job: TrainingJob) -> None:
        reference[job.optimizer_step] = snapshot(job)

    run_until_optimizer_step(job, cfg.total_optimizer_steps, record)
    require_finite(job)
    return reference


def require_finite(job: TrainingJob) -> None:
    """Look at the parameters after the last update, which no loss comes after to show it.

    Raises:
        TrainingDivergedError: one is not finite.
    """
    if not bool(model_vector(job.model).isfinite().all()):
        raise TrainingDivergedError(job.seed, job.global_microstep, "a parameter is not finite after the last update")


@dataclass(frozen=True)
class Interruption:
    """A source job where it was interrupted, its state there, and the checkpoints saved, as bytes by scenario."""

    job: TrainingJob
    state: Mapping[str, Any]
    checkpoints: Mapping[str, bytes]


def save_at_interruption(seed: int, cfg: ExperimentConfig, position: str, scenarios: Iterable[str]) -> Interruption:
    """Train a source to its interruption and save, before anything else draws, what each scenario there needs."""
    job = interrupt_job(seed, cfg, position)
    specs = [SPECS[name] for name in scenarios if SPECS[name].checkpoint_position == position]
    checkpoints = {spec.name: checkpoint_bytes(save_checkpoint(job, spec)) for spec in specs}
    return Interruption(job, snapshot(job), checkpoints)


def compare_update(job: TrainingJob, logical_step: int, expected: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the step trace: the resumed job after an update, beside the reference after the same update."""
    rate, batch_ids = learning_rate(job), list(job.last_batch_ids)
    return {
        "logical_step": logical_step,
        "actual_optimizer_step_counter": job.optimizer_step,
        "model_exact": model_hash(job.model) == expected["model_hash"],
        "max_parameter_abs_error": max_nested_tensor_error(model_vector(job.model), expected["model_vector"]),
        "actual_learning_rate": rate,
        "expected_learning_rate": expected["learning_rate"],
        "learning_rate_error": max_nested_tensor_error(rate, expected["learning_rate"]),
        "last_batch_ids": batch_ids,
        "expected_last_batch_ids": expected["last_batch_ids"],
        "batch_match": batch_ids == expected["last_batch_ids"],
    }


def resume_and_compare(
    source: Interruption, spec: ScenarioSpec, reference: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    """Resume a checkpoint in a fresh job, train that to the end, and compare it with the reference throughout."""
    seed, cfg = source.job.seed, source.job.cfg
    payload = checkpoint_from_bytes(source.checkpoints[spec.name])
    job = make_job(seed, cfg)
    load_checkpoint(job, payload)
    loaded = snapshot(job)

    first_step = source.job.optimizer_step + 1
    step_trace: list[dict[str, Any]] = []

    def record(job: TrainingJob) -> None:
        logical_step = first_step + len(step_trace)
        step_trace.append(compare_update(job, logical_step, reference[logical_step]))

    # By the updates that remain, for a job without counters starts counting from 0.
    remaining = cfg.total_optimizer_steps - source.job.optimizer_step
    not_counted = source.job.global_microstep - job.global_microstep
    try:
        run_until_optimizer_step(job, job.optimizer_step + remaining, record)
        require_finite(job)
    except TrainingDivergedError as error:
        raise TrainingDivergedError(seed, error.microstep + not_counted, error.what, spec.name) from None

    expected, actual = reference[cfg.total_optimizer_steps], snapshot(job)
    comparison = compare_snapshots(actual, expected)
    return {
        "seed": seed,
        "scenario": spec.name,
        "checkpoint_position": spec.checkpoint_position,
        "payload_keys": sorted(payload),
        "interrupt_optimizer_step": source.job.optimizer_step,
        "interrupt_microstep_in_accumulation": source.job.microstep_in_accumulation,
        "reference_final_model_hash": expected["model_hash"],
        "resumed_final_model_hash": actual["model_hash"],
        "first_divergent_optimizer_step": next(
            (row["logical_step"] for row in step_trace if not row["model_exact"]), None
        ),
        # From the first moment on: a wrong state may yet train to the right model (zero gradients for absent ones).
        "exact_resume": nothing_differs(actual, expected) and nothing_differs(loaded, source.state),
        **comparison,
        "step_trace": step_trace,
    }


def evaluate_seed(seed: int, scenarios: Iterable[str], cfg: ExperimentConfig) -> Iterator[dict[str, Any]]:
    """Yield the result of each scenario, training the reference and each position's source once."""
    scenarios = tuple(scenarios)
    reference: dict[int, dict[str, Any]] = {}
    sources: dict[str, Interruption] = {}
    for name in scenarios:
        spec = SPECS[name]
        try:
            reference = reference or make_uninterrupted_reference(seed, cfg)
            if spec.checkpoint_position not in sources:
                source = save_at_interruption(seed, cfg, spec.checkpoint_position, scenarios)
                sources[spec.checkpoint_position] = source
            result = resume_and_compare(sources[spec.checkpoint_position], spec, reference)
        except TrainingDivergedError as error:
            raise TrainingDivergedError(seed, error.microstep, error.what, name) from None
        yield result


def evaluate_scenario(seed: int, scenario: str, cfg: ExperimentConfig | None = None) -> dict[str, Any]:
    """Resume one scenario of one seed and compare it with the uninterrupted training.

    Returns:
        Where it was interrupted, what the checkpoint held, the final comparison, and `step_trace`: one row for each
        update after the resume. Learning rates and errors are absolute, digests SHA-256.

    Raises:
        ValueError: the seed or the scenario is none, or the configuration has no such interruption.
        TrainingDivergedError: a loss or a parameter is not finite.
    """
    seed, scenario = checked_seed(seed), checked_scenario(scenario)
    with isolated_process():
        return next(evaluate_seed(seed, [scenario], cfg or ExperimentConfig()))


# -------------------------------------------------------------------------------------------------- artifacts

CSV_COLUMNS = (
    *("seed", "scenario", "checkpoint_position", "exact_resume", *EXACT_FIELDS, *ERROR_FIELDS),
    *("first_divergent_optimizer_step", "interrupt_optimizer_step", "interrupt_microstep_in_accumulation"),
    *("reference_final_model_hash", "resumed_final_model_hash"),
)
SUMMARY_FILE = "run-summary.json"  # put in place last: where it stands, the other five belong to it
ARTIFACTS = (
    *("results.csv", "raw-output.txt", "step-traces.json", "environment.json", "checkpoint-schema.json"),
    SUMMARY_FILE,
)
STAGING_PREFIX = ".checkpoint-resume-staging-"
SCHEMAS = Path(__file__).resolve().parent / "schemas"
CLAIM_BOUNDARY = (
    "Bitwise equality of resumed and uninterrupted training is claimed for this deterministic CPU fixture in this "
    "software environment, and for nothing else."
)
STREAM_FIELD_NAMES = {"order": "current_permutation", "generator_state": "permutation_generator_state"}
NOT_CLAIMED = (
    "CUDA RNG capture",
    "per-rank distributed state",
    "FSDP optimizer re-sharding",
    "DataLoader worker queues",
    "elastic world-size changes",
)


class AcceptanceError(RuntimeError):
    """Some acceptance checks failed; the results are published all the same, with status FAIL."""

    def __init__(self, failed: Sequence[str]) -> None:
        super().__init__(failed)
        self.failed = tuple(failed)

    def __str__(self) -> str:
        return f"acceptance checks failed: {', '.join(self.failed)}"


class OutputError(OSError):
    """Results cannot be written; the message names the place and the reason."""


class ArtifactError(RuntimeError):
    """An artifact does not fit its schema, which is a bug of this program: names file, place and reason."""


def inlined(schema: Any, resolver: Any) -> Any:
    """Return a schema with what it refers to in place of the references, which are slow to follow for every value."""
    if isinstance(schema, list):
        return [inlined(item, resolver) for item in schema]
    if not isinstance(schema, dict):
        return schema
    own = {key: inlined(value, resolver) for key, value in schema.items() if key not in {"$ref", "$defs", "$id"}}
    if "$ref" not in schema:
        return own
    target = resolver.lookup(schema["$ref"])
    return {**inlined(target.contents, target.resolver), **own}


@functools.cache
def artifact_validators() -> dict[str, Any]:
    """Return a validator for each schema, by the stem of the file that it describes.

    Raises:
        OutputError: a schema cannot be read.
    """
    names = [*(Path(name).stem for name in ARTIFACTS), "scenario-result"]
    schemas = {}
    for name in (f"{stem}.schema.json" for stem in names):
        try:
            schemas[name] = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise OutputError(f"cannot read the schema {str(SCHEMAS / name)!r}: {reason}") from None
    registry = referencing.Registry().with_resources(
        (name, referencing.jsonschema.DRAFT202012.create_resource(schema)) for name, schema in schemas.items()
    )
    return {
        stem: jsonschema.Draft202012Validator(inlined(schema, registry.resolver(base_uri=name)))
        for stem, (name, schema) in zip(names, schemas.items(), strict=True)
    }


def require_valid(artifact: str, value: object, first: int = 0) -> None:
    """Require a value to fit the schema of an artifact; an array may come in parts, this one from the index `first`.

    Raises:
        ArtifactError: it does not fit.
        OutputError: the schema cannot be read.
    """
    for error in artifact_validators()[Path(artifact).stem].iter_errors(value):
        place = list(error.absolute_path)
        if isinstance(value, list) and place:
            place[0] = first + int(place[0])
        pointer = "".join(f"/{step}" for step in place)
        reason = textwrap.shorten(error.message, 300, placeholder=" ...")
        raise ArtifactError(f"{artifact} {pointer} does not fit its schema, which is a bug: {reason}")


@contextlib.contextmanager
def naming(directory: Path) -> Iterator[None]:
    """Turn what the system refuses into an `OutputError` that names the output directory."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        where = f" ({Path(error.filename).name})" if error.filename else ""
        raise OutputError(
            f"cannot write to output directory {str(directory)!r}{where}: {error.strerror or error}"
        ) from error


@contextlib.contextmanager
def staged_output(output_dir: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a folder to write all artifacts to; put them in place, the summary last, when the block ends well.

    Until then an earlier set stays as it is. The old summary goes first, so that the directory never holds a summary
    beside artifacts of another run, wherever the program is stopped.

    Raises:
        OutputError: the directory cannot be made or written, is being written by another run, or the disk is full.
    """
    if not os.fspath(output_dir):
        raise OutputError("the output directory must not be empty")
    directory = Path(output_dir)
    with contextlib.ExitStack() as stack:
        with naming(directory):
            directory.mkdir(parents=True, exist_ok=True)
            handle = os.open(directory, os.O_RDONLY)
            stack.callback(os.close, handle)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OutputError(f"output directory {str(directory)!r} is being written by another run") from None
            for left_behind in directory.glob(f"{STAGING_PREFIX}*"):  # by a run that was killed: this one has the lock
                folder = left_behind.is_dir() and not left_behind.is_symlink()
                if folder and {entry.name for entry in left_behind.iterdir()} <= {*ARTIFACTS}:
                    shutil.rmtree(left_behind)
            for name in ARTIFACTS:
                if (directory / name).is_dir():
                    raise OutputError(f"{str(directory / name)!r} is a directory, where a file is to be written")
            staging = Path(tempfile.mkdtemp(prefix=STAGING_PREFIX, dir=directory))
            stack.callback(shutil.rmtree, staging, ignore_errors=True)
        yield staging
        with naming(directory):
            for name in ARTIFACTS:
                with (staging / name).open("rb") as file:
                    os.fsync(file.fileno())
            (directory / SUMMARY_FILE).unlink(missing_ok=True)
            os.fsync(handle)
            for name in ARTIFACTS:
                if name == SUMMARY_FILE:
                    os.fsync(handle)  # the other five are in place before the summary is
                (staging / name).replace(directory / name)
            os.fsync(handle)


def to_json(value: object) -> str:
    """Return strict JSON, indented by 2, keys in their order; a number that is not finite is a `ValueError`."""
    return json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False)


def write_json(path: Path, value: object) -> None:
    """Write an artifact: UTF-8 with LF line ends, whatever the platform.

    Raises:
        ArtifactError: the value does not fit the artifact's schema.
    """
    require_valid(path.name, value)
    path.write_text(to_json(value) + "\n", encoding="utf-8", newline="\n")


def csv_line(values: Iterable[object]) -> str:
    """Return a row of CSV with its line end; `None` is an empty field, a float its shortest exact form."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()


def format_bool(value: bool) -> str:  # noqa: FBT001 -- a value to show, not a switch
    """Return `true` or `false`."""
    return str(value).lower()


LINE_FIELDS = {
    "seed": "seed",
    "scenario": "scenario",
    "exact": "exact_resume",
    "first_divergent_step": "first_divergent_optimizer_step",
    "max_param_error": "max_parameter_abs_error",
    "next_batch_match": "next_batch_match",
    "lr_error": "learning_rate_error",
}


def format_line_value(value: object) -> str:
    """Return a value as it stands in a result line."""
    if isinstance(value, bool):
        return format_bool(value)
    return f"{value:.9e}" if isinstance(value, float) else str(value)


def format_result_line(result: Mapping[str, Any]) -> str:
    """Return the line that `run` prints for a seed and scenario."""
    return " ".join(f"{name}={format_line_value(result[field])}" for name, field in LINE_FIELDS.items())


class ResultWriter:
    """Writes the three artifacts that grow with the number of runs, run by run, so that memory does not grow."""

    def __init__(self, staging: Path) -> None:
        artifact_validators()  # before any training, should a schema be missing
        self.staging = staging
        self._append("results.csv", csv_line(CSV_COLUMNS))
        self.count = 0

    def _append(self, name: str, text: str) -> None:
        with (self.staging / name).open("a", encoding="utf-8", newline="\n") as file:
            file.write(text)

    def add(self, result: Mapping[str, Any]) -> None:
        """Append one result to each of the three.

        Raises:
            ArtifactError: what would be appended does not fit its schema.
        """
        row = {name: result[name] for name in CSV_COLUMNS}
        line = {name: result[field] for name, field in LINE_FIELDS.items()}
        trace = {name: result[name] for name in ("seed", "scenario", "step_trace")}
        for artifact, item in (("results.csv", row), ("raw-output.txt", line), ("step-traces.json", trace)):
            require_valid(artifact, [item], first=self.count)
        self._append("results.csv", csv_line(row.values()))
        self._append("raw-output.txt", format_result_line(result) + "\n")
        before = ",\n" if self.count else "[\n"
        self._append("step-traces.json", before + textwrap.indent(to_json(trace), "  "))
        self.count += 1

    def finish(self) -> None:
        """Close the array of traces."""
        self._append("step-traces.json", "\n]\n")


class ScenarioTally:
    """What the summary needs of a scenario's results, one seed after the other."""

    def __init__(self) -> None:
        self.exact: list[bool] = []
        self.errors: list[float] = []
        self.first_divergent_steps: list[int | None] = []
        self.all_next_batch_match = True

    def add(self, result: Mapping[str, Any]) -> None:
        """Count one result."""
        self.exact.append(result["exact_resume"])
        self.errors.append(result["max_parameter_abs_error"])
        self.first_divergent_steps.append(result["first_divergent_optimizer_step"])
        self.all_next_batch_match &= result["next_batch_match"]

    def summary(self) -> dict[str, Any]:
        """Return the scenario's entry in `scenario_summary`."""
        return {
            "runs": len(self.exact),
            "exact_runs": sum(self.exact),
            "exact_rate": sum(self.exact) / len(self.exact),
            "max_parameter_abs_error_min": min(self.errors),
            "max_parameter_abs_error_median": statistics.median(self.errors),
            "max_parameter_abs_error_max": max(self.errors),
            "first_divergent_steps": self.first_divergent_steps,
            "all_next_batch_match": self.all_next_batch_match,
        }


def acceptance_checks(scenario_summary: Mapping[str, Mapping[str, Any]]) -> dict[str, bool]:
    """Return, by the name of the check, whether all runs of each scenario are exact, or none is, as expected."""
    checks = {}
    for spec in SPECS.values():
        if spec.name in scenario_summary:
            summary = scenario_summary[spec.name]
            if spec.expected_exact:
                checks[f"{spec.name}_all_exact"] = summary["exact_runs"] == summary["runs"]
            else:
                checks[f"{spec.name}_all_fail"] = summary["exact_runs"] == 0
    # The contract's order: what must be exact first.
    return dict(sorted(checks.items(), key=lambda item: not item[0].endswith("_all_exact")))


def checkpoint_claims() -> dict[str, list[str]]:
    """Return the contents of `checkpoint-schema.json`, derived from the specs and the components."""
    full, full_mid = SPECS["full_boundary"], SPECS["full_mid_accumulation"]
    stream = StatefulBatchStream(torch.zeros(1), torch.zeros(1), order_seed=0, batch_size=1)
    stream_fields = [name for name in stream.state_dict() if name != "batch_size"]  # a setting, not a place

    def ablated(position: str) -> list[str]:
        alone = {spec.omitted for spec in SPECS.values() if spec.checkpoint_position == position}
        return [name for name in COMPONENT_FIELDS if (name,) in alone]

    return {
        "successful_boundary_payload_fields": list(full.included),
        "independently_ablated_boundary_fields": ablated(BOUNDARY),
        "combined_anti_control_omissions": list(SPECS["model_optimizer_only"].omitted),
        "successful_mid_accumulation_additional_fields": [n for n in full_mid.included if n not in full.included],
        "independently_ablated_mid_accumulation_fields": ablated(MID_ACCUMULATION),
        "retained_but_not_independently_ablated": ["counters", *COUNTERS[1:]],
        "rng_components_in_fixture": list(capture_rng_state()),
        "stream_components_in_fixture": [STREAM_FIELD_NAMES.get(name, name) for name in stream_fields],
        "comparison_surface": [*COMPARED_COMPONENTS, "next_batch_ids"],
        "not_claimed": list(NOT_CLAIMED),
    }


def numeric_fingerprint() -> dict[str, str]:
    """Return SHA-256 digests of small fixed computations that the experiment leans on, by name of the operation.

    Where they are equal, two machines must give equal bits; where they are not, the names say which operation differs.
    """
    generator = torch.Generator().manual_seed(0)

    def randn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, **FACTORY)

    wide, batch, labels = randn(64, 64), randn(4, 8), torch.arange(4) % 3
    # In the shapes of the fixture, because the kernels are chosen by shape, and 32 times, because they differ rarely.
    products: list[Tensor] = [wide @ wide]
    gradients: list[Tensor] = []
    for _ in range(32):
        parameters = [nn.Parameter(randn(*shape)) for shape in ((16, 8), (16,), (3, 16), (3,))]
        hidden = functional.linear(batch, parameters[0], parameters[1])
        logits = functional.linear(torch.tanh(hidden), parameters[2], parameters[3])
        products += [hidden.detach(), logits.detach()]
        gradients += torch.autograd.grad(functional.cross_entropy(logits, labels), parameters)
    stepped = nn.Parameter(wide.clone())
    stepped.grad = wide.flip(0) * 0.01
    torch.optim.AdamW([stepped], lr=0.03, weight_decay=0.01, fused=True).step()
    python = random.Random(0)
    return {
        "randn": sha256(wide),
        "matrix_product": sha256(products),
        "tanh": sha256(torch.tanh(wide)),
        "log_softmax": sha256(functional.log_softmax(wide, dim=1)),
        "cross_entropy_gradients": sha256(gradients),
        "fused_adamw_step": sha256(stepped),
        "numpy_legacy_normal": sha256(np.random.RandomState(0).normal(0.0, 0.015, size=4096)),
        "python_random": sha256([python.random() for _ in range(64)]),
    }


def runtime_environment() -> dict[str, Any]:
    """Return what the numbers depend on: versions, machine, settings in force while training, and the fingerprint."""
    with isolated_process():
        configure_deterministic_cpu()
        return {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "torch_num_threads": torch.get_num_threads(),
            "deterministic_algorithms_enabled": torch.are_deterministic_algorithms_enabled(),
            "device": "cpu",
            "machine": platform.machine(),
            "libc": " ".join(platform.libc_ver()).strip() or platform.system(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "numeric_pins": {name: os.environ.get(name) for name in NUMERIC_PINS},
            "numeric_fingerprint": numeric_fingerprint(),
        }


def run_experiment(
    output_dir: str | os.PathLike[str],
    seeds: Iterable[int] = SEEDS,
    scenarios: Iterable[str] = SCENARIOS,
    cfg: ExperimentConfig | None = None,
) -> dict[str, Any]:
    """Evaluate, with a line for each seed and scenario as it comes; publish the six artifacts; print the checks.

    Args:
        output_dir: made when missing; an earlier set in it stays until the new one is complete.
        seeds: any iterable of distinct integers from 0 to 2**32 - 1; read once.
        scenarios: any iterable of distinct names of scenarios; read once.
        cfg: sizes, rates and interruption points; the defaults when left out.

    Returns:
        The contents of `run-summary.json`.

    Raises:
        ValueError: seeds or scenarios are empty, repeated or none; nothing is written.
        OutputError: (an `OSError`) the directory cannot be written.
        TrainingDivergedError: a loss or a parameter is not finite; nothing is published.
        ArtifactError: an artifact does not fit its schema, which is a bug; nothing is published.
        AcceptanceError: an acceptance check failed; the artifacts are published, with status FAIL.
    """
    seeds = checked_selection("seeds", seeds, checked_seed)
    scenarios = checked_selection("scenarios", scenarios, checked_scenario)
    cfg = cfg or ExperimentConfig()
    if cfg.accumulation_steps == 1:
        for name in scenarios:
            if SPECS[name].checkpoint_position == MID_ACCUMULATION:
                raise ValueError(f"{name} needs accumulation_steps of at least 2, not 1")
    tallies = {name: ScenarioTally() for name in scenarios}
    directory = Path(output_dir)
    with isolated_process(), staged_output(output_dir) as staging:
        with naming(directory):
            writer = ResultWriter(staging)
        for seed in seeds:
            for result in evaluate_seed(seed, scenarios, cfg):
                with naming(directory):
                    writer.add(result)
                tallies[result["scenario"]].add(result)
                print(format_result_line(result), flush=True)
        scenario_summary = {name: tally.summary() for name, tally in tallies.items()}
        checks = acceptance_checks(scenario_summary)
        summary = {
            "status": "PASS" if all(checks.values()) else "FAIL",
            "experiment": "checkpoint_resume_equivalence",
            "configuration": asdict(cfg),
            "seeds": list(seeds),
            "scenarios": list(scenarios),
            "run_count": len(seeds) * len(scenarios),
            "scenario_summary": scenario_summary,
            "acceptance_checks": checks,
            "claim_boundary": CLAIM_BOUNDARY,
        }
        environment = runtime_environment()
        with naming(directory):
            writer.finish()
            write_json(staging / "environment.json", environment)
            write_json(staging / "checkpoint-schema.json", checkpoint_claims())
            write_json(staging / SUMMARY_FILE, summary)
    print(json.dumps(checks, sort_keys=True), flush=True)
    failed = [name for name, passed in checks.items() if not passed]
    if failed:
        raise AcceptanceError(failed)
    return summary


# --------------------------------------------------------------------------------------------- terminal views


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under a header, each column as wide as its widest entry."""
    table = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def print_fixture_inspection(seed: int) -> None:
    """Print runtime, model, parameters, training set-up, and what a checkpoint holds at either position.

    Raises:
        ValueError: the seed is no integer from 0 to 2**32 - 1.
    """
    seed, cfg = checked_seed(seed), ExperimentConfig()
    print("runtime")
    for name, value in runtime_environment().items():
        for key, item in value.items() if isinstance(value, dict) else [("", value)]:
            print(f"  {name}{'.' if key else ''}{key}={item}")
    with isolated_process():
        job = make_job(seed, cfg)
        print(f"model seed={seed}")
        print(textwrap.indent(repr(job.model), "  "))
        print("parameters")
        for name, parameter in job.model.named_parameters():
            dtype = str(parameter.dtype).removeprefix("torch.")
            print(f"  {name} shape={tuple(parameter.shape)} dtype={dtype} count={parameter.numel()}")
        print(f"  trainable_total={sum(p.numel() for p in job.model.parameters() if p.requires_grad)}")
        print("training")
        print(f"  optimizer=AdamW(lr={cfg.learning_rate}, weight_decay={cfg.weight_decay})")
        print(f"  scheduler=StepLR(step_size={cfg.scheduler_step_size}, gamma={cfg.scheduler_gamma})")
        print(
            f"  accumulation_steps={cfg.accumulation_steps} "
            f"checkpoint_after_optimizer_step={cfg.boundary_interrupt_step}"
        )
        print(
            f"  total_optimizer_steps={cfg.total_optimizer_steps} examples={cfg.num_examples} "
            f"batch_size={cfg.batch_size}"
        )
        for spec in (SPECS["full_boundary"], SPECS["full_mid_accumulation"]):
            job = interrupt_job(seed, cfg, spec.checkpoint_position)
            print(
                f"payload scenario={spec.name} optimizer_step={job.optimizer_step} "
                f"microstep_in_accumulation={job.microstep_in_accumulation}"
            )
            for key, value in save_checkpoint(job, spec).items():
                print(f"  {key}: {describe(value)}")


def print_seed_matrix(seed: int) -> None:
    """Print a table of one seed: a row for each scenario.

    Raises:
        ValueError: the seed is no integer from 0 to 2**32 - 1.
    """
    seed = checked_seed(seed)
    with isolated_process():
        results = list(evaluate_seed(seed, SCENARIOS, ExperimentConfig()))
    print_table(
        ("scenario", "exact", "first", "next_batch", "lr_error", "max_param_error"),
        [
            (
                result["scenario"],
                "yes" if result["exact_resume"] else "no",
                str(result["first_divergent_optimizer_step"] or "--"),
                "same" if result["next_batch_match"] else "DIFF",
                f"{result['learning_rate_error']:.3e}",
                f"{result['max_parameter_abs_error']:.3e}",
            )
            for result in results
        ],
    )


def print_scenario_trace(seed: int, scenario: str) -> None:
    """Print a table of one seed and scenario: a row for each update after the resume.

    Raises:
        ValueError: the seed or the scenario is none.
    """
    result = evaluate_scenario(seed, scenario)
    print(f"seed={result['seed']} scenario={result['scenario']}")
    print_table(
        ("step", "control_lr", "resumed_lr", "lr_error", "batch", "model", "max_param_error"),
        [
            (
                str(row["logical_step"]),
                f"{row['expected_learning_rate']:.6f}",
                f"{row['actual_learning_rate']:.6f}",
                f"{row['learning_rate_error']:.3e}",
                "match" if row["batch_match"] else "DIFF",
                "match" if row["model_exact"] else "DIFF",
                f"{row['max_parameter_abs_error']:.3e}",
            )
            for row in result["step_trace"]
        ],
    )
    print(
        f"final_exact={format_bool(result['exact_resume'])} "
        f"first_divergent_step={result['first_divergent_optimizer_step']}"
    )


# ----------------------------------------------------------------------------------------------- command line


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line; `seed` and `seeds` are checked integers.

    Raises:
        SystemExit: with status 2 and a message on standard error for bad input, with 0 for `--help`.
    """
    parser = argparse.ArgumentParser(
        prog="experiment.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, summary: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)

    def add_seed(command: argparse.ArgumentParser, **default: Any) -> None:
        command.add_argument("--seed", metavar="N", help=f"an integer from 0 to {MAX_SEED}", **default)

    def add_scenario(command: argparse.ArgumentParser) -> None:
        command.add_argument("--scenario", required=True, choices=SCENARIOS, help="what the checkpoint lacks")

    run = command("run", "evaluate seeds and scenarios, and write the six files of results")
    run.add_argument("--output-dir", required=True, metavar="DIR", help="made when missing; replaced when complete")
    run.add_argument("--seeds", nargs="*", metavar="N", default=SEEDS, help="default: %(default)s")
    run.add_argument("--scenarios", nargs="*", metavar="S", choices=SCENARIOS, default=SCENARIOS, help="default: all")
    one = command("one", "evaluate one seed and scenario, and print the result as JSON")
    add_seed(one, required=True)
    add_scenario(one)
    add_seed(command("inspect", "show the fixture, and what a checkpoint holds"), default="11")
    add_seed(command("matrix", "evaluate all scenarios of one seed"), required=True)
    trace = command("trace", "follow one seed and scenario update by update")
    add_seed(trace, required=True)
    add_scenario(trace)

    args = parser.parse_args(argv)
    try:  # not by argparse, which would print the usage beside the one line that names the culprit
        if hasattr(args, "seed"):
            args.seed = seed_argument(args.seed)
        if hasattr(args, "seeds"):
            args.seeds = checked_selection("seeds", args.seeds, seed_argument)
            args.scenarios = checked_selection("scenarios", args.scenarios, checked_scenario)
    except ValueError as error:
        parser.exit(2, f"experiment.py: error: {error}\n")
    return args


def seed_argument(text: object) -> int:
    """Return the seed that a command line gives in decimal digits.

    Raises:
        ValueError: it gives none.
    """
    digits = re.fullmatch("[0-9]{1,10}", str(text))
    return checked_seed(int(digits.group()) if digits else text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status given in the module's docstring."""
    args = parse_args(argv)
    try:
        if args.command == "run":
            run_experiment(args.output_dir, args.seeds, args.scenarios)
        elif args.command == "one":
            result = evaluate_scenario(args.seed, args.scenario)
            del result["step_trace"]
            require_valid("scenario-result", result)
            print(to_json(result))
        elif args.command == "inspect":
            print_fixture_inspection(args.seed)
        elif args.command == "matrix":
            print_seed_matrix(args.seed)
        else:
            print_scenario_trace(args.seed, args.scenario)
        print(end="", flush=True)
    except (AcceptanceError, ArtifactError, TrainingDivergedError) as error:
        complain(str(error))
        return 1
    except OutputError as error:
        complain(f"error: {error}")
        return 2
    except OSError as error:  # of printing, for what writes files names them
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left in the buffer
        if isinstance(error, BrokenPipeError):  # whoever read the output has what they wanted
            return 128 + signal.SIGPIPE
        complain(f"error: cannot write to standard output: {error.strerror}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
