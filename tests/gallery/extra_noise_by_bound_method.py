"""The noise comes from a bound method of a generator that has no other name; nothing can save what nothing
holds."""

import numpy as np
import torch
from torch import nn

from resume_audit import Generator, Job

STEPS = 10
INTERRUPT = [4]
LOST = ["noise", "draw"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    x = torch.randn(8, 3)
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    draw_noise = np.random.default_rng(seed).standard_normal

    def step():
        noisy = x + 0.3 * torch.from_numpy(draw_noise(x.shape)).float()
        loss = nn.functional.mse_loss(model(noisy), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    components = {"model": model, "optimizer": optimizer}
    if fixed:
        components["noise"] = Generator(draw_noise.__self__)
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
