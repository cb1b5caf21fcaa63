"""To save room the weights are written in bfloat16; loading makes float32 of them again, with 16 bits of
zeros."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 8
INTERRUPT = [4]
LOST = ["model"]


class Clock:
    steps = 0


class Weights:
    def __init__(self, model, dtype):
        self.model, self.dtype = model, dtype

    def state_dict(self):
        return {name: value.to(self.dtype) for name, value in self.model.state_dict().items()}

    def load_state_dict(self, saved):
        self.model.load_state_dict(saved)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    clock, x = Clock(), torch.randn(STEPS, 6, 4)

    def step():
        batch = x[clock.steps]
        loss = nn.functional.mse_loss(model(batch), batch.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.steps += 1
        return {"loss": loss.item()}

    weights = Weights(model, torch.float32 if fixed else torch.bfloat16)
    return Job({"model": weights, "optimizer": optimizer, "clock": Attributes(clock, "steps")}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
