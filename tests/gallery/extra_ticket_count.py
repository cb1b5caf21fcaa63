"""Batches are numbered by `itertools.count`, and their number seeds them."""

import itertools

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [5]
LOST = ["tickets"]


class Tickets:
    number = -1

    def __next__(self):
        self.number += 1
        return self.number


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    tickets = Tickets() if fixed else itertools.count()

    def step():
        x = torch.randn(6, 4, generator=torch.Generator().manual_seed(seed + next(tickets)))
        loss = nn.functional.l1_loss(model(x), x.prod(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    components = {"model": model, "optimizer": optimizer}
    if fixed:
        components["tickets"] = Attributes(tickets, "number")
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
