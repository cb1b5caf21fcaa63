"""Losses gather in a mutable default argument, and each is divided by their mean."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 12
INTERRUPT = [6]
LOST = ["recent"]


class Clock:
    steps = 0


class Held:
    def __init__(self, values):
        self.values = values

    def state_dict(self):
        return {"values": list(self.values)}

    def load_state_dict(self, saved):
        self.values[:] = saved["values"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    clock = Clock()
    x = torch.randn(STEPS, 6, 4)

    def usual(loss, recent=[]):  # noqa: B006
        recent.append(loss)
        return sum(recent) / len(recent)

    def step():
        loss = nn.functional.mse_loss(model(x[clock.steps]), x[clock.steps].exp().mean(1, keepdim=True))
        optimizer.zero_grad()
        (loss / usual(loss.item())).backward()
        optimizer.step()
        clock.steps += 1
        return {"loss": loss.item()}

    components = {"model": model, "optimizer": optimizer, "clock": Attributes(clock, "steps")}
    if fixed:
        components["recent"] = Held(usual.__defaults__[0])
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
