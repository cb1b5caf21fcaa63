"""A hook on one weight subtracts the mean of its gradients so far, which lives in the hook's object alone."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [5]
LOST = ["total", "count", "hook"]


class Clock:
    steps = 0


class Centred:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def __call__(self, gradient):
        self.total, self.count = self.total + gradient, self.count + 1
        return gradient - 0.5 * self.total / self.count


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model, centred, clock = nn.Linear(4, 1), Centred(), Clock()
    model.weight.register_hook(centred)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(STEPS, 6, 4)

    def step():
        batch = x[clock.steps]
        loss = nn.functional.mse_loss(model(batch), batch.amax(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.steps += 1
        return {"loss": loss.item()}

    components = {"model": model, "optimizer": optimizer, "clock": Attributes(clock, "steps")}
    if fixed:
        components["centred"] = Attributes(centred, "total", "count")
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
