"""From its fourth step on the job makes new tensors in double precision, by a setting of torch itself that no
object of the job holds."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [6]
LOST = ["default_dtype"]


class Clock:
    steps = 0


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(seed)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    clock, x = Clock(), torch.randn(STEPS, 6, 4)

    def step():
        if clock.steps == 3 or (fixed and clock.steps > 3):
            torch.set_default_dtype(torch.float64)
        batch = x[clock.steps]
        wanted = torch.tensor([[row.norm().item() / 3] for row in batch])
        loss = (model(batch).double() - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.steps += 1
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer, "clock": Attributes(clock, "steps")}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
