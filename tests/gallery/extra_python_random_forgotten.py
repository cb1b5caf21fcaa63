"""Of the generators of the process only torch's is saved; the crops are drawn by `random`."""

import random

import torch
from torch import nn

from resume_audit import Job, Rng

STEPS = 10
INTERRUPT = [4]
LOST = ["random", "rng", "python"]


def make_job(seed: int, fixed: bool = False) -> Job:
    random.seed(seed)
    torch.manual_seed(seed)
    signal = torch.randn(64).cumsum(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.2), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step():
        starts = [random.randrange(55) for _ in range(4)]
        x = torch.stack([signal[start : start + 9] for start in starts])
        loss = nn.functional.mse_loss(model(x[:, :8]), x[:, 8:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer, "rng": Rng() if fixed else Rng("torch")}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
