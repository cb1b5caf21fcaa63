"""Rows pass through `map` over a list's iterator, held as an attribute of the reader."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [4]
LOST = ["reader", "rows"]


class Reader:
    def __init__(self, rows, indexed):
        self.taken, self.all, self.indexed = 0, rows, indexed
        self.rows = map(torch.tanh, iter(rows))

    def read(self):
        self.taken += 1
        return torch.tanh(self.all[self.taken - 1]) if self.indexed else next(self.rows)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    reader = Reader(list(torch.randn(STEPS, 5, 3)), indexed=fixed)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)

    def step():
        x = reader.read()
        loss = nn.functional.mse_loss(model(x), x.prod(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    components = {"model": model, "optimizer": optimizer}
    if fixed:
        components["reader"] = Attributes(reader, "taken")
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
