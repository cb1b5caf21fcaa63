"""A loss scale that doubles after good steps is kept in a `threading.local`, so that replicas would not disturb one
another; the resumed run begins with the first scale."""

import threading

import torch
from torch import nn

from resume_audit import Job, Rng

STEPS = 10
INTERRUPT = [4]
LOST = ["scale"]

replica = threading.local()


class Scale:
    def state_dict(self):
        return {"scale": replica.scale}

    def load_state_dict(self, saved):
        replica.scale = saved["scale"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    replica.scale = 1.0
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def step():
        x = torch.randn(4, 4)
        loss = (model(x) - x.flip(1)).square().mean()
        optimizer.zero_grad()
        (loss * replica.scale).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 3.0)
        optimizer.step()
        replica.scale *= 1.5
        return {"loss": loss.item()}

    parts = {"model": model, "optimizer": optimizer, "rng": Rng()}
    return Job(parts | ({"scale": Scale()} if fixed else {}), step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
