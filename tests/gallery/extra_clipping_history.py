"""Gradients are clipped at a quantile of the norms seen so far, which a partial carries along as its first
argument."""

import functools
import heapq

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 12
INTERRUPT = [6]
LOST = ["clip", "norms", "history"]


class Norms:
    def __init__(self):
        self.smallest = []

    def state_dict(self):
        return {"smallest": list(self.smallest)}

    def load_state_dict(self, saved):
        self.smallest[:] = saved["smallest"]


class Clock:
    steps = 0


def clip_to_quantile(norms, parameters):
    parameters = list(parameters)
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters]).item()
    heapq.heappush(norms, norm)
    ceiling = heapq.nsmallest(max(1, len(norms) // 3), norms)[-1]
    nn.utils.clip_grad_norm_(parameters, ceiling)
    return ceiling


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    norms, clock = Norms(), Clock()
    clip = functools.partial(clip_to_quantile, norms.smallest)

    def step():
        x = torch.randn(4, 4, generator=torch.Generator().manual_seed(seed + clock.steps))
        loss = (model(x).squeeze(1) - x.square().sum(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        ceiling = clip(model.parameters())
        optimizer.step()
        clock.steps += 1
        return {"loss": loss.item(), "ceiling": ceiling}

    components = {"model": model, "optimizer": optimizer, "clock": Attributes(clock, "steps")}
    if fixed:
        components["norms"] = norms
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
