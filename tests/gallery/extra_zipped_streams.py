"""Labelled and unlabelled batches run side by side through `enumerate(zip(…, cycle(…)))`; a resumed run
begins both anew."""

import itertools

import torch
from torch import nn

from resume_audit import Job

STEPS = 10
INTERRUPT = [4]
LOST = ["pairs", "zip", "enumerate"]


class Pairs:
    def __init__(self, labelled, unlabelled):
        self.labelled, self.unlabelled, self.number = labelled, unlabelled, 0

    def __next__(self):
        number, self.number = self.number, self.number + 1
        return number, (self.labelled[number], self.unlabelled[number % len(self.unlabelled)])

    def state_dict(self):
        return {"number": self.number}

    def load_state_dict(self, saved):
        self.number = saved["number"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    labelled, unlabelled = list(torch.randn(STEPS, 4, 3)), list(torch.randn(3, 4, 3))
    if fixed:
        pairs = Pairs(labelled, unlabelled)
    else:
        pairs = enumerate(zip(labelled, itertools.cycle(unlabelled), strict=False))

    def step():
        number, (known, unknown) = next(pairs)
        loss = nn.functional.cross_entropy(model(known), (known[:, 0] > 0).long())
        loss = loss + 0.1 * number / STEPS * model(unknown).softmax(1).square().sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    components = {"model": model, "optimizer": optimizer}
    if fixed:
        components["pairs"] = pairs
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
