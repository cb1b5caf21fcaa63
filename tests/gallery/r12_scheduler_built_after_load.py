"""A SequentialLR that is built after the optimizer was loaded resets the restored learning rate to the start
of the warm-up, and loading the scheduler's own state does not put it back."""

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from resume_audit import Job

REPORT = "pytorch/pytorch#119168"
STEPS = 12
INTERRUPT = [6]
LOST = ["lr", "param_groups", "optimizer"]


class WarmupCosine:
    """Built when needed; a resumed run builds it anew, from its own settings, before it takes the state over."""

    def __init__(self, optimizer, warmup, total):
        self.optimizer, self.warmup, self.total = optimizer, warmup, total
        self.chain = self.build()

    def build(self):
        up = LinearLR(self.optimizer, start_factor=0.1, total_iters=self.warmup)
        down = CosineAnnealingLR(self.optimizer, T_max=self.total - self.warmup)
        return SequentialLR(self.optimizer, [up, down], milestones=[self.warmup])

    def step(self):
        self.chain.step()

    def state_dict(self):
        return self.chain.state_dict()

    def load_state_dict(self, saved):
        self.chain = self.build()
        self.chain.load_state_dict(saved)


class Batches:
    def __init__(self, seed):
        self.seed, self.number = seed, 0

    def next(self):
        generator = torch.Generator().manual_seed(self.seed * 100 + self.number)
        self.number += 1
        x = torch.randn(8, 7, generator=generator)
        return x, (x[:, 0] > x[:, 1]).long()

    def state_dict(self):
        return {"number": self.number}

    def load_state_dict(self, saved):
        self.number = saved["number"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(7, 12), nn.GELU(), nn.Linear(12, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    schedule = WarmupCosine(optimizer, warmup=3, total=16)
    batches = Batches(seed)

    def step():
        x, y = batches.next()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lr = optimizer.param_groups[0]["lr"]
        schedule.step()
        return {"loss": loss.item(), "lr": lr}

    if fixed:  # the optimizer, which holds the learning rate, comes last
        components = {"model": model, "batches": batches, "schedule": schedule, "optimizer": optimizer}
    else:
        components = {"model": model, "batches": batches, "optimizer": optimizer, "schedule": schedule}
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
