"""Of the averaged model only the inner module is saved, as one would for use; how many models went into it is
lost, and the first update after the resume replaces the average."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [6]
LOST = ["n_averaged", "swa"]


class Clock:
    steps = 0


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
    swa = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    clock = Clock()
    x = torch.randn(STEPS, 6, 3)

    def step():
        batch = x[clock.steps]
        loss = nn.functional.mse_loss(model(batch), batch.prod(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.steps += 1
        if clock.steps >= 3:
            swa.update_parameters(model)
        with torch.no_grad():
            return {"loss": loss.item(), "averaged": swa(batch).sum().item()}

    average = swa if fixed else swa.module
    clocked = Attributes(clock, "steps")
    return Job({"model": model, "average": average, "optimizer": optimizer, "clock": clocked}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
