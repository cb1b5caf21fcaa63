"""Velocities are kept in a dictionary by parameter, outside of any optimizer."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [4]
LOST = ["velocity"]


class Clock:
    steps = 0


class Velocities:
    def __init__(self, velocity):
        self.velocity = velocity

    def state_dict(self):
        return {"velocity": list(self.velocity.values())}

    def load_state_dict(self, saved):
        for mine, theirs in zip(self.velocity.values(), saved["velocity"], strict=True):
            mine.copy_(theirs)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model, clock = nn.Linear(4, 1), Clock()
    velocity = {p: torch.zeros_like(p) for p in model.parameters()}
    x = torch.randn(STEPS, 6, 4)

    def step():
        batch = x[clock.steps]
        loss = nn.functional.mse_loss(model(batch), batch.amax(1, keepdim=True))
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p, v in velocity.items():
                p -= 0.05 * v.mul_(0.8).add_(p.grad)
        clock.steps += 1
        return {"loss": loss.item()}

    components = {"model": model, "clock": Attributes(clock, "steps")}
    if fixed:
        components["velocity"] = Velocities(velocity)
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
