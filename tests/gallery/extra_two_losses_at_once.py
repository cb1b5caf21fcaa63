"""Both the schedule of the noise and the generator that draws it are left out; restoring either alone heals
nothing."""

import numpy as np
import torch
from torch import nn

from resume_audit import Attributes, Generator, Job

STEPS = 10
INTERRUPT = [5]
LOST = ["noise.level"]


class Noise:
    def __init__(self, seed):
        self.level, self.rng = 1.0, np.random.default_rng(seed)

    def draw(self, shape):
        self.level *= 0.8
        return self.level * torch.from_numpy(self.rng.standard_normal(shape)).float()


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    noise, x = Noise(seed), torch.randn(6, 4)

    def step():
        loss = nn.functional.mse_loss(model(x + noise.draw(x.shape)), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    components = {"model": model, "optimizer": optimizer}
    if fixed:
        components |= {"level": Attributes(noise, "level"), "noise_rng": Generator(noise.rng)}
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
