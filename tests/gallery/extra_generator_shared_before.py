"""Sampler and augmentation draw from one generator in turns; each puts it back for itself, and from then on
each has its own."""

import random

import torch
from torch import nn

from resume_audit import Job

STEPS = 10
INTERRUPT = [4]
LOST = ["draw", "sampler", "augment"]


class Drawing:
    def __init__(self, draw, in_place):
        self.draw, self.in_place = draw, in_place

    def state_dict(self):
        return {"draw": self.draw.getstate()}

    def load_state_dict(self, saved):
        if not self.in_place:
            self.draw = random.Random()
        self.draw.setstate(saved["draw"])


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    draw = random.Random(seed)
    sampler, augment = Drawing(draw, in_place=fixed), Drawing(draw, in_place=fixed)
    x = torch.randn(16, 3)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        batch = x[sampler.draw.sample(range(16), 4)] * augment.draw.uniform(0.8, 1.2)
        loss = nn.functional.mse_loss(model(batch), batch.prod(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer, "sampler": sampler, "augment": augment}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
