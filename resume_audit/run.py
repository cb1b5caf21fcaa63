"""What one process does: build the job, load, step, save, and tell the outcome of every step.

Everything here runs in a process of its own; the caller sends a `Run` and gets a `Trace`.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from resume_audit import encoding
from resume_audit.graph.digest import graph_bytes
from resume_audit.job import Job
from resume_audit.process.channel import Channel
from resume_audit.process.failure import Failure
from resume_audit.process.server import quiet, seed_process
from resume_audit.process.source import Factory

Outcome = dict[str, str]
"""Digests by the name of a component, or `metrics.` and the name of a metric."""

METRICS = "metrics."
"""What the names of metrics begin with in an outcome."""

WRITTEN_AT_MOST = 256 << 20
"""Bytes of parameters that are written down for a whole run; above it only the last step's are."""

AT_ONCE = 1 << 20
"""Elements of a tensor that are compared at a time, so that no second copy of it is made."""


@dataclass
class Trace:
    """What a run has shown.

    components: names in order. own_load: whether the job brings its own load. outcomes: by step; those of a step that
    was not observed hold metrics only. metrics: the plain numbers. fresh: the digests of the components as built.
    loaded: those right after loading. flights: by step, what was in flight. written: whether the save wrote
    something. drift: by step, the largest difference of the parameters. comparable: whether a component has any state.
    """

    components: list[str] = field(default_factory=list)
    own_load: bool = False
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    metrics: dict[int, dict[str, float]] = field(default_factory=dict)
    fresh: Outcome = field(default_factory=dict)
    loaded: Outcome = field(default_factory=dict)
    flights: dict[int, Flight] = field(default_factory=dict)
    written: bool = True
    drift: dict[int, float | None] = field(default_factory=dict)
    comparable: bool = True


@dataclass(frozen=True)
class Flight:
    """What a step has left in flight: gradients held, learning rates in force, and the digest of each data order."""

    gradients: bool
    rates: tuple[float, ...]
    orders: dict[str, str]


class Tell:
    """Where the run stands: told to the caller, so that a run that never answers is known by its phase and step."""

    def __init__(self, channel: Channel, phase: str) -> None:
        self.channel, self.phase, self.step = channel, phase, None
        self.at("factory", None)

    step: int | None

    def at(self, phase: str, step: int | None) -> None:
        self.phase, self.step = phase, step
        self.channel.send(("at", phase, step))


class Task:
    """A task for a process of its own: `work` gives the result, an exception of the job's is told as a failure.

    threads: how many torch may use, the same in every run of an audit.
    """

    phase = "baseline"
    threads = 1

    def __call__(self, channel: Channel, factory: Factory) -> None:
        tell = Tell(channel, self.phase)
        with quiet():
            try:
                seed_process()
                torch.set_num_threads(self.threads)
                result = self.work(factory, tell)
            except BaseException as error:  # noqa: BLE001 -- whatever the job raises, SystemExit included
                channel.send(("failed", Failure.of(error, tell.phase, tell.step)))
                return
        channel.send(("result", result))

    def work(self, factory: Factory, tell: Tell) -> Any:
        raise NotImplementedError


@dataclass
class Run(Task):
    """One run of the job.

    stop: the last step. load: a checkpoint to start from, taken after step `start`. saves: checkpoints to write, by
    step. observe: digest the components at every step, else at the last only. omit: a component
    to resume without. write_parameters, read_parameters: a folder for the parameters at every step from
    `parameters_from` on, or with those of another run. in_flight: say what every step has left in flight.
    """

    seed: int
    stop: int
    phase: str = "baseline"
    start: int = 0
    load: Path | None = None
    saves: dict[int, Path] = field(default_factory=dict)
    observe: bool = True
    omit: str | None = None
    write_parameters: Path | None = None
    read_parameters: Path | None = None
    parameters_from: int = 0
    in_flight: bool = False

    def work(self, factory: Factory, tell: Tell) -> Trace:
        job = build(factory, self.seed, tell)
        tell.at(self.phase, self.start)
        trace = Trace(list(job.components), own_load=job.load is not None)
        if self.load is not None:
            trace.fresh = component_digests(job)
            restore(job, self.load, self.start, tell, self.omit)
            trace.loaded = component_digests(job)
        elif self.observe:
            trace.outcomes[0] = trace.fresh = component_digests(job)
        trace.comparable = any(bool(component.state_dict()) for component in job.components.values())
        self.measure(job, trace, self.start)
        for step in self.steps(job, trace, tell):
            if step in self.saves:
                trace.written = store(job, self.saves[step], step, tell)
            self.measure(job, trace, step)
        return trace

    def steps(self, job: Job, trace: Trace, tell: Tell) -> Iterator[int]:
        """Take the steps one by one, each with its outcome."""
        if self.start in self.saves and self.load is None:
            yield self.start
        for step in range(self.start + 1, self.stop + 1):
            tell.at(self.phase, step)
            metrics = take_step(job)
            outcome = metric_digests(metrics)
            if self.observe or step == self.stop:
                outcome |= component_digests(job)
            trace.outcomes[step] = outcome
            trace.metrics[step] = plain_numbers(metrics)
            if self.in_flight:
                trace.flights[step] = flight(job)
            yield step

    def measure(self, job: Job, trace: Trace, step: int) -> None:
        """Write down the parameters at this step, or measure how far they are from those written down."""
        if step < self.parameters_from:
            return
        if self.write_parameters is not None:
            tensors = floating_tensors(job)
            size = sum(tensor.nbytes for tensor in tensors.values())
            if step == self.stop or size * (self.stop - self.parameters_from) <= WRITTEN_AT_MOST:
                torch.save(tensors, self.write_parameters / f"{step}.pt")
        if self.read_parameters is not None:
            file = self.read_parameters / f"{step}.pt"
            if file.exists():
                written = torch.load(file, weights_only=True, mmap=True)
                trace.drift[step] = largest_difference(floating_tensors(job), written)


def build(factory: Factory, seed: int, tell: Tell) -> Job:
    """Call the factory. Raises whatever it raises; TypeError where it returns no job."""
    tell.at("factory", None)
    job = factory(seed)
    if not isinstance(job, Job):
        raise TypeError(f"the factory returned {type(job).__name__}, not a resume_audit.Job")
    for name, component in job.components.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a component has to be text, not {name!r}")
        if name.startswith(METRICS):
            raise ValueError(f"a component cannot be named {name!r}: metrics are named so")
        for method in ("state_dict", "load_state_dict"):
            if not callable(getattr(component, method, None)):
                raise TypeError(f"component {name!r} ({type(component).__name__}) has no {method}()")
    return job


def take_step(job: Job) -> Mapping[str, Any]:
    metrics = job.step()
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping):
        raise TypeError(f"step() returned {type(metrics).__name__}, not a dict of metrics")
    for name in metrics:
        if not isinstance(name, str):
            raise TypeError(f"the name of a metric has to be text, not {name!r}")
    return metrics


def metric_digests(metrics: Mapping[str, Any]) -> Outcome:
    """The digests of what a step returned."""
    return {METRICS + name: encoding.digest(value, graph_bytes) for name, value in metrics.items()}


def store(job: Job, path: Path, step: int, tell: Tell) -> bool:
    """Save as the job does; whether anything was written."""
    tell.at("save", step)
    if job.save is None:
        torch.save({name: component.state_dict() for name, component in job.components.items()}, path)
    else:
        job.save(path)
    if path.is_dir():
        return any(item.is_file() and item.stat().st_size for item in path.rglob("*"))
    return path.is_file() and path.stat().st_size > 0


def restore(job: Job, path: Path, step: int, tell: Tell, omit: str | None = None) -> None:
    """Load as the job does; `omit` leaves one component as the factory made it."""
    tell.at("load", step)
    if job.load is None:
        states = torch.load(path, weights_only=False)
        for name, component in list(job.components.items()):
            if name != omit:
                component.load_state_dict(states[name])
        return
    untouched = through_bytes(job.components[omit].state_dict()) if omit is not None else None
    job.load(path)
    if omit is not None:
        job.components[omit].load_state_dict(untouched)


def through_bytes(state: Any) -> Any:
    """A copy of a state that shares nothing with it."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


def component_digests(job: Job) -> Outcome:
    return {name: encoding.digest(component.state_dict(), graph_bytes) for name, component in job.components.items()}


def only_components(outcome: Outcome) -> Outcome:
    return {name: value for name, value in outcome.items() if not name.startswith(METRICS)}


def differing(one: Outcome, other: Outcome) -> list[str]:
    """Names whose digests differ, or that only one of the two has, in the order of `one`, then of `other`."""
    return [name for name in one | other if one.get(name) != other.get(name)]


def plain_numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    numbers = {}
    for name, value in metrics.items():
        with contextlib.suppress(Exception):  # a metric of the job's own class may do anything when asked for a number
            numbers[name] = float(value)
    return numbers


def floating_tensors(job: Job) -> dict[str, torch.Tensor]:
    """All floating-point tensors in the states of the components, by component and path; not copied."""
    found: dict[str, torch.Tensor] = {}
    stack: list[tuple[str, Any]] = [(name, part.state_dict()) for name, part in reversed(list(job.components.items()))]
    seen: set[int] = set()
    while stack:
        path, value = stack.pop()
        if isinstance(value, torch.Tensor):
            if value.is_floating_point() or value.is_complex():
                found[path] = value.detach()
        elif isinstance(value, (Mapping, list, tuple)) and id(value) not in seen:
            seen.add(id(value))
            items = value.items() if isinstance(value, Mapping) else enumerate(value)
            stack.extend((f"{path}.{key}", item) for key, item in reversed(list(items)))
    return found


def largest_difference(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> float | None:
    """The largest absolute difference of any element; inf where structure, shape or dtype differ or one side is NaN."""
    if not ours and not theirs:
        return None
    if ours.keys() != theirs.keys():
        return float("inf")
    worst = 0.0
    for name, tensor in ours.items():
        other = theirs[name]
        if tensor.shape != other.shape or tensor.dtype != other.dtype:
            return float("inf")
        wide = torch.complex128 if tensor.is_complex() else torch.float64
        pieces = (torch.split(flat, AT_ONCE) for flat in (tensor.reshape(-1), other.reshape(-1)))
        for one, two in zip(*pieces, strict=True):
            worst = max(worst, _largest_gap(one.to(wide), two.to(wide)))
    return worst


def _largest_gap(one: torch.Tensor, two: torch.Tensor) -> float:
    same = (one == two) | (one.isnan() & two.isnan())
    gap = (one - two).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf"), posinf=float("inf"))
    return float(gap.max()) if gap.numel() else 0.0


def flight(job: Job) -> Flight:
    """What is in flight now, as far as the components show it; any small entry may be a data order's."""
    gradients, rates, orders = False, [], {}
    for name, component in job.components.items():
        if isinstance(component, torch.nn.Module):
            gradients = gradients or any(_holds(p) for p in component.parameters())
        elif isinstance(component, torch.optim.Optimizer):
            rates += [float(group["lr"]) for group in component.param_groups if "lr" in group]
            gradients = gradients or any(_holds(p) for group in component.param_groups for p in group["params"])
        else:
            state = component.state_dict()
            if isinstance(state, Mapping) and not hasattr(component, "optimizer"):
                for key, value in state.items():
                    if isinstance(value, (int, str, list, tuple)) or (
                        torch.is_tensor(value) and value.numel() < 10_000
                    ):
                        orders[f"{name}.{key}"] = encoding.digest(value, graph_bytes)
    return Flight(gradients, tuple(rates), orders)


def _holds(parameter: torch.Tensor) -> bool:
    return parameter.grad is not None and bool(parameter.grad.any())


__all__ = ["Run", "Task", "Trace"]
