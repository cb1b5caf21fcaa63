"""How far dropout has grown is told by a context variable that the loop advances; a new process has its default."""

import contextvars

import torch
from torch import nn

from resume_audit import Job, Rng

STEPS = 10
INTERRUPT = [4]
LOST = ["current_step"]

current_step = contextvars.ContextVar("current_step", default=0)


class GrowingDropout(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, min(0.5, 0.08 * current_step.get()))


class Clock:
    def state_dict(self):
        return {"step": current_step.get()}

    def load_state_dict(self, saved):
        current_step.set(saved["step"])


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    current_step.set(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), GrowingDropout(), nn.Linear(8, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)

    def step():
        x = torch.randn(8, 4)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        current_step.set(current_step.get() + 1)
        return {"loss": loss.item()}

    parts = {"model": model, "optimizer": optimizer, "rng": Rng()}
    return Job(parts | ({"clock": Clock()} if fixed else {}), step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
