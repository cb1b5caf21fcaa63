"""Forty layers have scratch buffers that differ after a resume and do not matter; one layer has one that
does."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 8
INTERRUPT = [4]
LOST = ["layers.17.carried"]


class Clock:
    steps = 0


class Layer(nn.Module):
    def __init__(self, carries, persistent):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(4))
        self.carries = carries
        self.register_buffer("carried", torch.zeros(4), persistent=persistent)

    def forward(self, x):
        out = x + 0.02 * (x * self.gain).tanh()
        if self.carries:
            out = out + 0.1 * self.carried
        self.carried = out.detach().mean(0)
        return out


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Module()
    model.layers = nn.Sequential(*(Layer(carries=n == 17, persistent=fixed) for n in range(40)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    clock, x = Clock(), torch.randn(STEPS, 6, 4)

    def step():
        loss = nn.functional.mse_loss(model.layers(x[clock.steps]), x[clock.steps].flip(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.steps += 1
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer, "clock": Attributes(clock, "steps")}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
