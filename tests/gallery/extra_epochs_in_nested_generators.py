"""Epochs and batches come from generators within generators; where they are suspended is not in the
checkpoint."""

import itertools

import torch
from torch import nn

from resume_audit import Job

STEPS = 12
INTERRUPT = [7]  # second epoch, two batches in
LOST = ["epoch", "order", "stream", "batch"]
PER_EPOCH = 5


class Seen:
    batches = 0

    def state_dict(self):
        return {"batches": self.batches}

    def load_state_dict(self, saved):
        self.batches = saved["batches"]


def batches_of(epoch, seed, skip=0):
    order = torch.randperm(20, generator=torch.Generator().manual_seed(seed + epoch))
    for rows in order.split(4)[skip:]:
        yield epoch, rows


def stream_from(seed, seen=None):
    start, skip = divmod(seen.batches if seen else 0, PER_EPOCH)
    for epoch in itertools.count(start):
        yield from batches_of(epoch, seed, skip if epoch == start else 0)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    x = torch.randn(20, 4)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    seen = Seen()
    stream = stream_from(seed, seen if fixed else None)

    def step():
        epoch, rows = next(stream)
        loss = nn.functional.mse_loss(model(x[rows]), x[rows].amax(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.batches += 1
        return {"loss": loss.item(), "epoch": float(epoch)}

    return Job({"model": model, "optimizer": optimizer, "seen": seen}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
