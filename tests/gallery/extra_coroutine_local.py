"""The loop is a coroutine, driven by hand; its smoothed loss, against which outliers are weighed, is a local
variable."""

import types

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [5]
LOST = ["level"]


class Progress:
    steps, smoothed = 0, 1.0


@types.coroutine
def hand_out(metrics):
    yield metrics


async def train(model, optimizer, progress, data, keep):
    level = progress.smoothed
    while True:
        x = data[progress.steps]
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        (loss / level).backward()
        optimizer.step()
        level = 0.5 * level + 0.5 * loss.item()
        progress.steps += 1
        if keep:
            progress.smoothed = level
        await hand_out({"loss": loss.item()})


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model, progress = nn.Linear(4, 1), Progress()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loop = train(model, optimizer, progress, torch.randn(STEPS, 6, 4), keep=fixed)
    components = {"model": model, "optimizer": optimizer, "progress": Attributes(progress, "steps", "smoothed")}
    return Job(components, step=lambda: loop.send(None))


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
