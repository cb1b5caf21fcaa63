"""Small jobs, one for each thing that an audit can say; none of them trains for long."""

import os
import random
import signal
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from resume_audit import Attributes, Job, Rng

STEPS = 6
INTERRUPT = [2]


class Tally:
    """A count that its own step uses, and what else a test wants to keep in it."""

    def __init__(self, **more: object) -> None:
        self.count = 0
        self.__dict__.update(more)


class Part:
    """A component with the state that a function gives."""

    def __init__(self, read: Callable[[], Any], write: Callable[[Any], object] = lambda state: None) -> None:
        self.read, self.write = read, write

    def state_dict(self) -> Any:
        return self.read()

    def load_state_dict(self, state: Any) -> None:
        self.write(state)


def training(
    seed: int, **components: object
) -> tuple[nn.Module, Tally, dict[str, Any], Callable[[], dict[str, float]]]:
    """A linear model whose learning rate falls with a count: what most jobs here are built on."""
    torch.manual_seed(seed)
    model, tally = nn.Linear(3, 1), Tally()
    data = torch.randn(12, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> dict[str, float]:
        loss = (model(data) - data.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + tally.count)
        optimizer.step()
        tally.count += 1
        return {"loss": loss.item()}

    return model, tally, {"model": model, "optimizer": optimizer, **components}, step


def exact(seed: int) -> Job:
    _, tally, components, step = training(seed)
    return Job(components | {"tally": Attributes(tally, "count")}, step)


def bare(seed: int) -> Job:
    """Nothing but a count: no optimizer, whose first one imports for seconds."""
    tally = Tally()

    def step() -> dict[str, float]:
        tally.count += seed + 1
        return {"count": float(tally.count)}

    return Job({"tally": Attributes(tally, "count")}, step)


def loses_count(seed: int) -> Job:
    _, _, components, step = training(seed)
    return Job(components, step)


def loses_counts(seed: int) -> Job:
    """Six counts, each told by itself, and none of them saved."""
    tallies = [Tally() for _ in range(6)]

    def step() -> dict[str, float]:
        for tally in tallies:
            tally.count += 1
        return {f"count_{number}": float(tally.count) for number, tally in enumerate(tallies)}

    return Job({}, step)


def begins_again(seed: int) -> Job:
    """A count that is saved, and begun again by the first step of whoever does not know that it has begun."""
    _, tally, components, step = training(seed)
    tally.begun = False  # type: ignore[attr-defined]

    def beginning() -> dict[str, float]:
        if not tally.begun:  # type: ignore[attr-defined]
            tally.begun, tally.count = True, 0  # type: ignore[attr-defined]
        return step()

    return Job(components | {"tally": Attributes(tally, "count")}, beginning)


def moved_to_end(seed: int) -> Job:
    """What was used last stands last in a cache, and its state forgets that."""
    tally = Tally(cache=OrderedDict.fromkeys("abc", 1.0))
    tally.cache.move_to_end("a")  # type: ignore[attr-defined]

    def step() -> dict[str, float]:
        name, tally.count = next(iter(tally.cache)), tally.count + 1  # type: ignore[attr-defined]
        tally.cache.move_to_end(name)  # type: ignore[attr-defined]
        return {"first": float(ord(name))}

    return Job({"tally": Attributes(tally, "count")}, step)


def set_made_anew(seed: int) -> Job:
    """A set whose order comes from what it once held, and which is saved sorted."""
    tally = Tally(held=set(range(1, 18, 8)))

    def step() -> dict[str, float]:
        tally.count += 1
        if tally.count == 1:
            tally.held = set()  # type: ignore[attr-defined]
            for number in (17, 9, 1):  # they collide: the first to come stands first
                tally.held.add(number)  # type: ignore[attr-defined]
        return {"first": float(next(iter(tally.held)))}  # type: ignore[attr-defined]

    return Job({"tally": Attributes(tally, "count")}, step)


def loses_in_a_chain(seed: int) -> Job:
    """Of two things one is saved: the second resume in a row starts from a run that is wrong already."""
    tally = Tally(other=0)

    def step() -> dict[str, float]:
        tally.other += 1  # type: ignore[attr-defined]
        tally.count += tally.other  # type: ignore[attr-defined]
        return {"count": float(tally.count)}

    return Job({"tally": Attributes(tally, "count")}, step)


def reads_on(seed: int) -> Job:
    """The next number of an open file, at whose place nobody looks."""
    model, tally, components, step = training(seed)
    numbers = (Path(__file__).parent / "jobs.py").open("rb", buffering=0)

    def reading() -> dict[str, float]:
        with torch.no_grad():
            model.get_parameter("bias").add_(numbers.read(1)[0] / 1000)
        return step()

    return Job(components | {"tally": Attributes(tally, "count")}, reading)


def loss_held(seed: int) -> Job:
    """The backward pass of a step waits for the next one."""
    torch.manual_seed(seed)
    model = nn.Linear(3, 1)
    held: list[torch.Tensor] = []

    def step() -> dict[str, float]:
        if held:
            model.zero_grad()
            held.pop().backward()  # type: ignore[no-untyped-call]
            with torch.no_grad():
                model.weight -= 0.1 * (model.weight.grad if model.weight.grad is not None else 0)
        held.append(model(torch.ones(2, 3)).square().mean())
        return {"loss": held[0].item()}

    return Job({"model": model}, step)


def heals(seed: int) -> Job:
    """What is lost is needed for one step only."""
    _, tally, components, step = training(seed)
    tally.extra = 0.0  # type: ignore[attr-defined]

    def noisy() -> dict[str, float]:
        said, tally.extra = tally.extra, 1.0  # type: ignore[attr-defined]
        return step() | {"extra": said}

    return Job(components | {"tally": Attributes(tally, "count")}, noisy)


def inert(seed: int) -> Job:
    """A component that nobody uses."""
    _, tally, components, step = training(seed)
    return Job(components | {"tally": Attributes(tally, "count"), "idle": Attributes(Tally(), "count")}, step)


def unseeded(seed: int) -> Job:
    """Noise from the operating system."""
    _, tally, components, step = training(seed)
    noise = random.Random()

    def noisy() -> dict[str, float]:
        return step() | {"noise": noise.random()}

    return Job(components | {"tally": Attributes(tally, "count")}, noisy)


def by_hash(seed: int) -> Job:
    """The order of a set of strings decides."""
    _, tally, components, step = training(seed)
    names = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta"}

    def ordered() -> dict[str, float]:
        return step() | {"first": float(sum(map(ord, next(iter(names)))))}

    return Job(components | {"tally": Attributes(tally, "count")}, ordered)


def clock(seed: int) -> Job:
    """The time of day gets into the state."""
    _, tally, components, step = training(seed)
    tally.started = time.time_ns()  # type: ignore[attr-defined]

    def timed() -> dict[str, float]:
        return step() | {"started": float(tally.started)}  # type: ignore[attr-defined]

    return Job(components | {"tally": Attributes(tally, "count")}, timed)


def looked_at(seed: int) -> Job:
    """Asking for the state changes it."""
    _, tally, components, step = training(seed)

    def read() -> dict[str, int]:
        tally.count += 1
        return {}

    return Job(components | {"touchy": Part(read)}, step)


def save_disturbs(seed: int) -> Job:
    """Saving draws a random number that the training was to have."""
    _, tally, components, step = training(seed)
    components |= {"tally": Attributes(tally, "count"), "rng": Rng("torch")}

    def noisy() -> dict[str, float]:
        return step() | {"noise": torch.rand(()).item()}

    def save(path: Path) -> None:
        torch.save({name: part.state_dict() for name, part in components.items()}, path)
        torch.rand(1)

    def load(path: Path) -> None:
        for name, state in torch.load(path, weights_only=False).items():
            components[name].load_state_dict(state)

    return Job(components, noisy, save, load)


def factory_raises(seed: int) -> Job:
    raise RuntimeError("no data today")


def no_job(seed: int) -> object:
    return {"model": 1}


def no_seed() -> Job:
    return exact(0)


def no_state_dict(seed: int) -> Job:
    _, _, components, step = training(seed)
    return Job(components | {"counter": object()}, step)


def at_step(number: int, act: Callable[[], object]) -> Callable[[int], Job]:
    def factory(seed: int) -> Job:
        _, tally, components, step = training(seed)

        def bad() -> dict[str, float]:
            if tally.count == number - 1:
                act()
            return step()

        return Job(components | {"tally": Attributes(tally, "count")}, bad)

    return factory


def _raise() -> None:
    raise ArithmeticError("the loss is not finite")


def _hang() -> None:
    while True:
        signal.pause()


step_raises = at_step(3, _raise)


def _spin() -> None:
    while True:
        pass


step_spins = at_step(3, _spin)
step_hangs = at_step(3, _hang)
step_is_killed = at_step(3, lambda: os.kill(os.getpid(), signal.SIGKILL))
step_exits = at_step(3, lambda: os._exit(7))
step_asks_to_exit = at_step(3, lambda: sys.exit("enough"))


def with_checkpoints(save: Callable[[Path, Any], object], load: Callable[[Path, Any], object]) -> Callable[[int], Job]:
    def factory(seed: int) -> Job:
        _, tally, components, step = training(seed)
        components["tally"] = Attributes(tally, "count")
        return Job(components, step, lambda path: save(path, components), lambda path: load(path, components))

    return factory


def _save(path: Path, components: Any) -> None:
    torch.save({name: part.state_dict() for name, part in components.items()}, path)


def _load(path: Path, components: Any) -> None:
    for name, state in torch.load(path, weights_only=False).items():
        components[name].load_state_dict(state)


def _full(path: Path, components: Any) -> None:
    raise OSError(28, "No space left on device", str(path))


save_raises = with_checkpoints(_full, _load)
save_writes_nothing = with_checkpoints(lambda path, parts: None, lambda path, parts: None)


def _save_elsewhere(path: Path, components: Any) -> None:
    path.write_text("see the other file", encoding="utf-8")
    _save(path.with_name("the other file"), components)


load_reads_another = with_checkpoints(
    _save_elsewhere, lambda path, parts: _load(path.with_name("the other file"), parts)
)
load_raises = with_checkpoints(_save, lambda path, parts: torch.load(path.with_name("elsewhere")))
load_does_nothing = with_checkpoints(_save, lambda path, parts: None)


def unserialisable(seed: int) -> Job:
    _, _, components, step = training(seed)
    return Job(components | {"part": Part(lambda: {"hook": lambda: None})}, step)


def not_a_dict(seed: int) -> Job:
    return Job([nn.Linear(1, 1)], lambda: None)  # type: ignore[arg-type]


def numbered_parts(seed: int) -> Job:
    return Job({0: nn.Linear(1, 1)}, lambda: None)  # type: ignore[dict-item]


def metrics_in_the_way(seed: int) -> Job:
    return Job({"metrics.loss": nn.Linear(1, 1)}, lambda: {"loss": 0.0})


def numbered_metrics(seed: int) -> Job:
    return Job({}, lambda: {("loss", 1): 0.0})  # type: ignore[dict-item]


def unreadable_part(seed: int) -> Job:
    def read() -> Any:
        raise LookupError("the state is not there")

    return Job({"part": Part(read)}, lambda: None)


class Awkward:
    """A metric that will not be a number, and says so in its own way."""

    def __float__(self) -> float:
        raise KeyError("not a number")


def awkward_metrics(seed: int) -> Job:
    _, tally, components, step = training(seed)
    tally.awkward = Awkward()  # type: ignore[attr-defined]
    metrics = {"huge": 10**400, "awkward": tally.awkward}  # type: ignore[attr-defined]
    return Job(components | {"tally": Attributes(tally, "count")}, lambda: step() | metrics)


def state_within_itself(seed: int) -> Job:
    """A component whose state holds itself."""
    _, tally, components, step = training(seed)
    state: dict[str, Any] = {"count": 1}
    state["self"] = state
    return Job(components | {"tally": Attributes(tally, "count"), "loop": Part(lambda: state)}, step)


def clock_between(seed: int) -> Job:
    """The time is in the state at every step but the last, and in no metric."""
    _, tally, components, step = training(seed)
    tally.at = 0.0  # type: ignore[attr-defined]

    def timed() -> dict[str, float]:
        tally.at = time.time() if tally.count < STEPS - 1 else 0.0  # type: ignore[attr-defined]
        return step()

    return Job(components | {"tally": Attributes(tally, "count", "at")}, timed)


def odd_message(seed: int) -> Job:
    """An error that names a file whose name is no text."""
    raise LookupError(os.fsdecode(b"caf\xe9"))


def nothing_to_compare(seed: int) -> Job:
    return Job({}, lambda: None)


def tells_threads(seed: int) -> Job:
    raise RuntimeError(f"{torch.get_num_threads()} threads")


def prints(seed: int) -> Job:
    print("a line that is no part of the report")
    return exact(seed)
