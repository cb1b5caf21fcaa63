"""The gradient scaler is left out of the checkpoint: its scale has grown since the start, and clipping, done
without unscaling, depends on it."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 12
INTERRUPT = [7]
LOST = ["scaler", "_scale", "growth_tracker"]


class Clock:
    steps = 0


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)
    clock = Clock()
    x = torch.randn(STEPS, 8, 4)

    def step():
        batch = x[clock.steps]
        loss = nn.functional.mse_loss(model(batch), batch.sum(1, keepdim=True))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        scaler.step(optimizer)
        scaler.update()
        clock.steps += 1
        return {"loss": loss.item()}

    components = {"model": model, "optimizer": optimizer, "clock": Attributes(clock, "steps")}
    if fixed:
        components["scaler"] = scaler
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
