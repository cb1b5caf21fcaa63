"""The first rows come from one list and the others from another, by `chain`, `islice`, `filter` and a
generator expression."""

import itertools

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [5]
LOST = ["rows"]


class Taken:
    rows = 0


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    easy, hard = torch.randn(8, 4), 2 * torch.randn(40, 4)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    taken = Taken()
    rows = itertools.chain(itertools.islice(easy, 6), filter(lambda row: row[0] > -1, (row + 0.1 for row in hard)))

    def step():
        if fixed:
            for _ in range(taken.rows - step.drawn):
                next(rows)
            step.drawn = taken.rows + 2
        x = torch.stack([next(rows), next(rows)])
        taken.rows += 2
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True).tanh())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    step.drawn = 0
    return Job({"model": model, "optimizer": optimizer, "taken": Attributes(taken, "rows")}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
