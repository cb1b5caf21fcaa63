"""A job to start from: replace what is in `make_job` by what your training script does.

resume-audit THIS_FILE.py                       # DIVERGES: something is missing from this checkpoint
resume-audit THIS_FILE.py --factory make_fixed  # EXACT
"""

import copy
from typing import Any

import torch
from torch import nn

from resume_audit import Attributes, Job, Rng

STEPS = 12  # length of the uninterrupted run; or --steps


class Average:
    """An exponential moving average of the weights that starts quickly and then slows down."""

    def __init__(self, model: nn.Module) -> None:
        self.model = copy.deepcopy(model).requires_grad_(requires_grad=False)
        self.updates = 0

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        self.updates += 1
        decay = min(0.99, self.updates / (self.updates + 3))
        for average, weight in zip(self.model.parameters(), model.parameters(), strict=True):
            average.lerp_(weight, 1 - decay)

    def state_dict(self) -> dict[str, torch.Tensor]:
        return self.model.state_dict()  # and `updates`? that is what is lost

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        self.model.load_state_dict(state)


class Progress:
    """Where the loop stands."""

    step = 0


def make_job(seed: int, *, fixed: bool = False) -> Job:
    """Build everything from scratch, as the script does at its start; every call must do the same."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
    average = Average(model)
    progress = Progress()
    data = torch.randn(96, 6)

    def step() -> dict[str, Any]:
        """One step of the loop. What it returns is compared too."""
        x = data[torch.randperm(len(data))[:8]]
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        scheduler.step()
        average.update(model)
        progress.step += 1
        return {"loss": loss.item(), "lr": scheduler.get_last_lr()[0]}

    # What you believe to be the state, in the order of restoring: whatever has state_dict() and load_state_dict().
    # For the rest there are adapters: Attributes(obj, *names), Gradients(model), Generator(g), Rng().
    components = {
        "model": model,
        "optimizer": optimizer,
        "scheduler": scheduler,
        "average": average,
        "progress": Attributes(progress, "step"),
        "rng": Rng(),
    }
    if fixed:
        components["updates"] = Attributes(average, "updates")

    # Your own checkpoint code goes here: save(path) makes a file or a folder of the path, load(path) reads it. Without
    # them the states of all components are saved with torch.save.
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    """The same job with nothing missing."""
    return make_job(seed, fixed=True)
