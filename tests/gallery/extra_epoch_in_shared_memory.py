"""The epoch from which the order of the data is drawn lies in shared memory, so that workers may read it; nothing
saves it, and the resumed run draws the orders of the first epochs again."""

import multiprocessing
import random

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 12
INTERRUPT = [6]
LOST = ["epoch"]


class Order:
    def __init__(self, seed):
        self.seed, self.epoch, self.left = seed, multiprocessing.Value("i", 0), []

    def take(self):
        if not self.left:
            self.left = list(range(12))
            random.Random(self.seed + self.epoch.value).shuffle(self.left)
            self.epoch.value += 1
        taken, self.left = self.left[:3], self.left[3:]
        return taken


class Epoch:
    def __init__(self, order):
        self.order = order

    def state_dict(self):
        return {"value": self.order.epoch.value}

    def load_state_dict(self, saved):
        self.order.epoch.value = saved["value"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    data, order = torch.randn(12, 4), Order(seed)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)

    def step():
        x = data[order.take()]
        loss = (model(x) - x[:, :2] * x[:, 2:]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    parts = {"model": model, "optimizer": optimizer, "order": Attributes(order, "left")}
    return Job(parts | ({"epoch": Epoch(order)} if fixed else {}), step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
