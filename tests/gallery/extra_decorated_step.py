"""A decorator skips the update whenever its own budget, a frozen value that is replaced at each call, is used
up."""

import functools
from typing import NamedTuple

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 12
INTERRUPT = [5]
LOST = ["budget"]


class Budget(NamedTuple):
    left: float = 3.0
    spent: int = 0


class Budgeted:
    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function, self.budget = function, Budget()

    def __call__(self):
        train = self.budget.left >= 1
        metrics = self.function(train)
        left, spent = self.budget
        self.budget = Budget(left - 1, spent + 1) if train else Budget(left + 0.75, spent)
        return metrics


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    count = nn.Module()
    count.register_buffer("steps", torch.tensor(0))
    x = torch.randn(STEPS, 6, 4)

    @Budgeted
    def step(train):
        batch = x[int(count.steps)]
        loss = nn.functional.mse_loss(model(batch), batch.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        if train:
            optimizer.step()
        count.steps += 1
        return {"loss": loss.item()}

    components = {"model": model, "optimizer": optimizer, "count": count}
    if fixed:
        components["budget"] = Attributes(step, "budget")
        torch.serialization.add_safe_globals([Budget])
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
