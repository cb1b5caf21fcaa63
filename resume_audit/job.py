"""The job under audit and the adapters that make a component of what has no `state_dict()` of its own."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch


@runtime_checkable
class Stateful(Protocol):
    """The protocol of `torch.distributed.checkpoint.stateful`: a state that can be read and be put back."""

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state_dict: Any, /) -> Any: ...


Metrics = Mapping[str, Any] | None


@dataclass
class Job:
    """A training job as its own script builds it.

    components: what its author believes to be the state, by name, in the order of restoring. A load may
    replace entries. step: one step of the loop; may return metrics by name. save, load: the job's own
    checkpoint code, each given a `Path`. `save` makes a file or a folder of it. Without them the
    states of all components go through one `torch.save`.

    Raises:
        TypeError: components that are no dict, a step that is no function, a save without a load or the other way.
    """

    components: MutableMapping[str, Any]
    step: Callable[[], Metrics]
    save: Callable[[Path], Any] | None = None
    load: Callable[[Path], Any] | None = None

    def __post_init__(self) -> None:
        kind = type(self.components)
        if not issubclass(kind, MutableMapping):
            raise TypeError(f"components has to be a dict of components by name, not {kind.__name__}")
        if not callable(self.step):
            raise TypeError(f"step has to be a function without arguments, not {type(self.step).__name__}")
        if (self.save is None) != (self.load is None):
            raise TypeError("a job brings both save and load, or neither")


class Attributes:
    """Some attributes of an object as a component, for counters and the like."""

    def __init__(self, target: object, *names: str) -> None:
        if not names:
            raise TypeError("Attributes(obj, *names) wants the name of at least one attribute")
        self.target, self.names = target, names

    def state_dict(self) -> dict[str, Any]:
        return {name: copy.deepcopy(getattr(self.target, name)) for name in self.names}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        for name in self.names:
            setattr(self.target, name, copy.deepcopy(state_dict[name]))


class Gradients:
    """The gradients of a model as a component: what an open accumulation window holds."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model

    def state_dict(self) -> dict[str, torch.Tensor]:
        return {name: p.grad.detach().clone() for name, p in self.model.named_parameters() if p.grad is not None}

    def load_state_dict(self, state_dict: Mapping[str, torch.Tensor]) -> None:
        for name, p in self.model.named_parameters():
            p.grad = state_dict[name].detach().clone() if name in state_dict else None


class Generator:
    """One generator as a component: `torch.Generator`, `numpy.random.Generator` or `RandomState`, `random.Random`."""

    def __init__(
        self, generator: torch.Generator | np.random.Generator | np.random.RandomState | random.Random
    ) -> None:
        self.generator = generator

    def state_dict(self) -> dict[str, Any]:
        if isinstance(self.generator, torch.Generator):
            return {"state": self.generator.get_state()}
        if isinstance(self.generator, np.random.Generator):
            return {"state": copy.deepcopy(self.generator.bit_generator.state)}
        if isinstance(self.generator, np.random.RandomState):
            return {"state": self.generator.get_state(legacy=False)}
        return {"state": self.generator.getstate()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        state = state_dict["state"]
        if isinstance(self.generator, torch.Generator):
            self.generator.set_state(state)
        elif isinstance(self.generator, np.random.Generator):
            self.generator.bit_generator.state = copy.deepcopy(state)
        elif isinstance(self.generator, np.random.RandomState):
            self.generator.set_state(state)
        else:
            self.generator.setstate(state)


def _python_state() -> Any:
    return random.getstate()


def _numpy_state() -> Any:
    return np.random.get_state(legacy=False)  # noqa: NPY002 -- the global generator is meant


PROCESS_GENERATORS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "python": (_python_state, random.setstate),
    "numpy": (_numpy_state, np.random.set_state),
    "torch": (torch.get_rng_state, torch.set_rng_state),
}
"""The generators that a process has without being asked: how each is read and put back."""


def _process_generators() -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    if torch.cuda.is_available():
        cuda = {"cuda": (torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all)}
        return PROCESS_GENERATORS | cuda
    return PROCESS_GENERATORS


class Rng:
    """The process's own generators as a component: all of them, or those named of python, numpy, torch, cuda."""

    def __init__(self, *names: str) -> None:
        known = _process_generators()
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"no such process generator here: {', '.join(unknown)}; there are {', '.join(known)}")
        self.names = names or tuple(known)

    def state_dict(self) -> dict[str, Any]:
        known = _process_generators()
        return {name: known[name][0]() for name in self.names}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        known = _process_generators()
        for name in self.names:
            known[name][1](state_dict[name])
