"""ReduceLROnPlateau is left out because "it has no schedule": the count of bad evaluations starts anew and
the rate falls too late."""

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from resume_audit import Attributes, Job

STEPS = 14
INTERRUPT = [6]
LOST = ["plateau", "num_bad_epochs", "best"]


class Clock:
    steps = 0


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    plateau = ReduceLROnPlateau(optimizer, factor=0.1, patience=3, threshold=0.5)
    clock = Clock()
    x = torch.randn(32, 2)
    y = x.sum(1, keepdim=True) + 0.5 * torch.randn(32, 1)

    def step():
        rows = torch.arange(8) + 8 * (clock.steps % 4)
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.steps += 1
        with torch.no_grad():
            plateau.step(nn.functional.mse_loss(model(x), y).item())
        return {"loss": loss.item(), "lr": optimizer.param_groups[0]["lr"]}

    components = {"model": model, "optimizer": optimizer, "clock": Attributes(clock, "steps")}
    if fixed:
        components["plateau"] = plateau
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
