"""Each epoch shuffles the last one's order in place; the generator is saved, the order that it is applied to
is not."""

import random

import torch
from torch import nn

from resume_audit import Generator, Job

STEPS = 12
INTERRUPT = [4]  # the end of the first epoch
LOST = ["order"]
PER_EPOCH = 4


class Order:
    def __init__(self, rows, draw, with_rows):
        self.order, self.draw, self.with_rows = list(range(rows)), draw, with_rows
        self.taken = 0

    def __next__(self):
        if self.taken % PER_EPOCH == 0:
            self.draw.shuffle(self.order)
        at = 3 * (self.taken % PER_EPOCH)
        self.taken += 1
        return self.order[at : at + 3]

    def state_dict(self):
        return {"taken": self.taken} | ({"order": list(self.order)} if self.with_rows else {})

    def load_state_dict(self, saved):
        self.taken = saved["taken"]
        if self.with_rows:
            self.order = saved["order"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    draw = random.Random(seed)
    x = torch.randn(12, 4)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    order = Order(12, draw, with_rows=fixed)

    def step():
        rows = next(order)
        loss = nn.functional.mse_loss(model(x[rows]), x[rows].sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item(), "rows": float(sum(2**row for row in rows))}

    return Job({"model": model, "optimizer": optimizer, "draw": Generator(draw), "batches": order}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
