"""A thread of its own fills a bounded queue from a generator; neither its place nor what waits in the queue
is saved."""

import queue
import threading

import torch
from torch import nn

from resume_audit import Job

STEPS = 8
INTERRUPT = [3]
LOST = ["feed", "thread", "waiting"]


class Feed:
    def __init__(self, seed, replay):
        self.seed, self.replay, self.taken = seed, replay, 0
        self.waiting = queue.Queue(maxsize=2)
        self.thread = None

    def fill(self):
        number = 0
        while True:
            self.waiting.put(torch.randn(6, 4, generator=torch.Generator().manual_seed(self.seed + number)))
            number += 1

    def take(self):
        if self.thread is None:
            self.thread = threading.Thread(target=self.fill, daemon=True)
            self.thread.start()
        self.taken += 1
        return self.waiting.get()

    def state_dict(self):
        return {"taken": self.taken}

    def load_state_dict(self, saved):
        while self.replay and self.taken < saved["taken"]:
            self.take()
        self.taken = saved["taken"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    feed = Feed(seed, replay=fixed)

    def step():
        x = feed.take()
        loss = nn.functional.mse_loss(model(x), x.cos().sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer, "feed": feed}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
