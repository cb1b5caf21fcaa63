"""The step is the generator's own `__next__`; the loop's momentary learning rate is one of its local
variables."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [5]
LOST = ["rate"]


class Progress:
    steps, rate = 0, 0.2


def train(model, progress, data, keep):
    rate = progress.rate
    while True:
        loss = nn.functional.mse_loss(model(data[progress.steps]), data[progress.steps].abs().sum(1, keepdim=True))
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= rate * parameter.grad
        rate *= 0.8
        progress.steps += 1
        if keep:
            progress.rate = rate
        yield {"loss": loss.item()}


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model, progress = nn.Linear(3, 1), Progress()
    run = train(model, progress, torch.randn(STEPS, 6, 3), keep=fixed)
    return Job({"model": model, "progress": Attributes(progress, "steps", "rate")}, run.__next__)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
