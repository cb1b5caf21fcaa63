"""A logging handler watches the losses that go by and lowers the rate when they no longer fall; the best loss and
the bad steps since are the handler's own."""

import logging

import torch
from torch import nn

from resume_audit import Attributes, Job, Rng

STEPS = 12
INTERRUPT = [8]
LOST = ["best", "bad"]


class Watch(logging.Handler):
    def __init__(self, optimizer):
        super().__init__()
        self.optimizer, self.best, self.bad = optimizer, float("inf"), 0

    def emit(self, record):
        (loss,) = record.args
        self.best, self.bad = (loss, 0) if loss < self.best else (self.best, self.bad + 1)
        if self.bad == 2:
            self.bad = 0
            for group in self.optimizer.param_groups:
                group["lr"] *= 0.6


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    log, watch = logging.getLogger("train"), Watch(optimizer)
    log.setLevel(logging.INFO)
    log.addHandler(watch)

    def step():
        x = torch.randn(4, 4)
        loss = (model(x) - x.square()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.info("loss %f", loss.item())
        return {"loss": loss.item()}

    parts = {"model": model, "optimizer": optimizer, "rng": Rng()}
    return Job(parts | ({"watch": Attributes(watch, "best", "bad")} if fixed else {}), step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
