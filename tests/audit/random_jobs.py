"""Jobs put together at random from pieces of state, with one piece left out of the checkpoint, or none."""

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from resume_audit import Attributes, Generator, Job


class Count:
    """An attribute that is a number."""

    lost = ".value"

    def __init__(self, seed: int) -> None:
        self.value = seed

    def draw(self) -> float:
        self.value += 1
        return float(self.value)

    def component(self) -> Any:
        return Attributes(self, "value")


class Slotted(Count):
    """The same in a slot."""

    __slots__ = ("hidden",)
    lost = ".hidden"

    def __init__(self, seed: int) -> None:
        self.hidden = seed

    def draw(self) -> float:
        self.hidden = self.hidden * 3 % 1009 + 1
        return float(self.hidden)

    def component(self) -> Any:
        return Attributes(self, "hidden")


class Average(Count):
    """A tensor that is changed in place."""

    def __init__(self, seed: int) -> None:
        self.value = torch.full((3,), float(seed))  # type: ignore[assignment]

    def draw(self) -> float:
        self.value.mul_(0.5).add_(1.0)  # type: ignore[attr-defined]
        return float(self.value.sum())  # type: ignore[attr-defined]


class Nested(Count):
    """A number deep within containers."""

    lost = ".value.inner[1].depth"

    def __init__(self, seed: int) -> None:
        self.value = {"inner": [{"fixed": [1, 2]}, {"depth": seed}]}  # type: ignore[assignment]

    def draw(self) -> float:
        self.value["inner"][1]["depth"] += 2  # type: ignore[index]
        return float(self.value["inner"][1]["depth"])  # type: ignore[index]


class Window(Count):
    """The last few of a series."""

    def __init__(self, seed: int) -> None:
        self.value = deque([seed], maxlen=3)  # type: ignore[assignment]

    def draw(self) -> float:
        self.value.append(sum(self.value) % 101 + 1)  # type: ignore[attr-defined, call-overload]
        return float(sum(self.value))  # type: ignore[call-overload]


class TorchNoise(Count):
    """A torch generator."""

    lost = ".generator"

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self) -> float:
        return float(torch.rand((), generator=self.generator))

    def component(self) -> Any:
        return Generator(self.generator)


class NumpyNoise(TorchNoise):
    """A NumPy generator."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)  # type: ignore[assignment]

    def draw(self) -> float:
        return float(self.generator.random())  # type: ignore[attr-defined]


class PythonNoise(TorchNoise):
    """A generator of the standard library."""

    def __init__(self, seed: int) -> None:
        self.generator = random.Random(seed)  # type: ignore[assignment]

    def draw(self) -> float:
        return self.generator.random()  # type: ignore[attr-defined, no-any-return]


class Closed(Count):
    """A variable that only two inner functions see."""

    lost = "ticks"

    def __init__(self, seed: int) -> None:
        ticks = seed

        def draw() -> float:
            nonlocal ticks
            ticks += 1
            return float(ticks)

        def read() -> dict[str, int]:
            return {"ticks": ticks}

        def write(state: dict[str, int]) -> None:
            nonlocal ticks
            ticks = state["ticks"]

        self.functions = draw, read, write

    def draw(self) -> float:
        return self.functions[0]()

    def component(self) -> Any:
        return Functions(*self.functions[1:])


class Functions:
    """A component made of two functions."""

    def __init__(self, read: Callable[[], Any], write: Callable[[Any], Any]) -> None:
        self.read, self.write = read, write

    def state_dict(self) -> Any:
        return self.read()

    def load_state_dict(self, state: Any) -> None:
        self.write(state)


KINDS = [Count, Slotted, Average, Nested, Window, TorchNoise, NumpyNoise, PythonNoise, Closed]


def build(kinds: tuple[int, ...], omitted: int | None, seed: int) -> Job:
    """Return a job of these pieces whose checkpoint lacks one of them."""
    pieces = [KINDS[kind](seed + number) for number, kind in enumerate(kinds)]

    def step() -> dict[str, float]:
        return {f"piece{number}": piece.draw() for number, piece in enumerate(pieces)}

    components = {f"part{i}": piece.component() for i, piece in enumerate(pieces) if i != omitted}
    return Job(components, step)


def lost_path(kinds: tuple[int, ...], omitted: int) -> str:
    """Return the path of the piece that is left out, as a reader would write it."""
    lost = KINDS[kinds[omitted]].lost
    return f"pieces[{omitted}]{lost}" if lost.startswith(".") else lost
