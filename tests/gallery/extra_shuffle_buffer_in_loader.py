"""An iterable dataset shuffles through a buffer; the loader's iterator, and the buffer with it, begins
anew."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

from resume_audit import Job

STEPS = 10
INTERRUPT = [4]
LOST = ["buffer", "draw", "dataset", "batches", "loader"]


class Shuffled(IterableDataset):
    def __init__(self, rows, seed):
        self.rows, self.seed = rows, seed

    def __iter__(self):
        draw, buffer = random.Random(self.seed), []
        while True:
            for row in self.rows:
                buffer.append(row)
                if len(buffer) == 5:
                    yield buffer.pop(draw.randrange(5))


class Batches:
    """What cannot be saved is drawn again."""

    def __init__(self, loader, replay):
        self.batches, self.replay, self.taken = iter(loader), replay, 0

    def __next__(self):
        self.taken += 1
        return next(self.batches)

    def state_dict(self):
        return {"taken": self.taken}

    def load_state_dict(self, saved):
        while self.replay and self.taken < saved["taken"]:
            next(self)
        self.taken = saved["taken"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    loader = DataLoader(Shuffled(torch.randn(11, 4), seed), batch_size=3, generator=torch.Generator())
    batches = Batches(loader, replay=fixed)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        x = next(batches)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True).sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer, "batches": batches}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
