"""A dropout mask is kept for four steps as a plain attribute of its module: neither parameter nor buffer."""

import torch
from torch import nn

from resume_audit import Job, Rng

STEPS = 12
INTERRUPT = [6]
LOST = ["mask"]


class SlowDropout(nn.Module):
    def __init__(self, width, registered):
        super().__init__()
        self.register_buffer("uses", torch.tensor(0))
        if registered:
            self.register_buffer("mask", torch.ones(width))
        else:
            self.mask = torch.ones(width)

    def forward(self, x):
        if self.uses % 4 == 0:
            self.mask = (torch.rand(self.mask.shape) > 0.4).float()
        self.uses += 1
        return x * self.mask


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 10), nn.Tanh(), SlowDropout(10, registered=fixed), nn.Linear(10, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

    def step():
        x = torch.randn(6, 4)
        loss = nn.functional.mse_loss(model(x), x.norm(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer, "rng": Rng()}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
