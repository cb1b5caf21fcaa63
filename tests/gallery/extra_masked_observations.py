"""Observations that have been used up are masked in a NumPy masked array; the values are saved, the mask is not."""

import numpy as np
import torch
from torch import nn

from resume_audit import Job

STEPS = 9
INTERRUPT = [4]
LOST = ["_mask"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    observed = np.ma.array(torch.randn(24).numpy(), mask=[False] * 24)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)

    def step():
        rows = np.flatnonzero(~observed.mask)[:2]
        x = torch.from_numpy(observed.data[rows]).float()
        observed.mask[rows] = True
        loss = (model(x) - x.prod()).square().mean() + float(observed.mean()) * model.weight.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    def save(path):
        kept = torch.from_numpy(observed.data.copy()), torch.from_numpy(observed.mask.copy())
        torch.save([model.state_dict(), optimizer.state_dict(), *kept], path)

    def load(path):
        weights, moments, values, mask = torch.load(path)
        model.load_state_dict(weights)
        optimizer.load_state_dict(moments)
        observed.data[:] = values.numpy()
        if fixed:
            observed.mask[:] = mask.numpy()

    return Job({"model": model, "optimizer": optimizer}, step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
