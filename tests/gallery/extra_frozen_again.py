"""The backbone is thawed at the fourth step by setting `requires_grad`; the flag is in no state dict, and a
later resume trains the head alone."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [6]
LOST = ["requires_grad"]


class Clock:
    steps = 0


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    backbone, head = nn.Linear(4, 6).requires_grad_(False), nn.Linear(6, 1)
    optimizer = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=0.02)
    clock = Clock()
    x = torch.randn(STEPS, 8, 4)

    def step():
        if clock.steps == 3 or (fixed and clock.steps > 3):
            backbone.requires_grad_(True)
        batch = x[clock.steps]
        loss = nn.functional.mse_loss(head(backbone(batch).tanh()), batch.amin(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.steps += 1
        return {"loss": loss.item()}

    parts = {"backbone": backbone, "head": head, "optimizer": optimizer, "clock": Attributes(clock, "steps")}
    return Job(parts, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
