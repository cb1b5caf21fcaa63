"""Batches are prepared ahead and wait in a `queue.Queue`; the counter that prepares them is saved, those that
wait are not."""

import queue

import torch
from torch import nn

from resume_audit import Job

STEPS = 10
INTERRUPT = [4]
LOST = ["ready", "prefetch"]
AHEAD = 3


class Prefetch:
    def __init__(self, seed, with_ready):
        self.seed, self.with_ready, self.prepared = seed, with_ready, 0
        self.ready = queue.Queue()

    def take(self):
        while self.ready.qsize() < AHEAD:
            generator = torch.Generator().manual_seed(self.seed + self.prepared)
            self.ready.put(torch.randn(6, 4, generator=generator))
            self.prepared += 1
        return self.ready.get()

    def state_dict(self):
        return {"prepared": self.prepared} | ({"ready": list(self.ready.queue)} if self.with_ready else {})

    def load_state_dict(self, saved):
        self.prepared = saved["prepared"]
        for batch in saved.get("ready", ()):
            self.ready.put(batch)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    prefetch = Prefetch(seed, with_ready=fixed)

    def step():
        x = prefetch.take()
        loss = nn.functional.mse_loss(model(x), x.cos().sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer, "prefetch": prefetch}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
