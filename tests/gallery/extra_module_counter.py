"""A counter of the module decides when gradients are flipped for the adversary; it is nobody's attribute."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [5]
LOST = ["rounds"]
rounds = 0


class Clock:
    steps = 0


class Rounds:
    def state_dict(self):
        return {"rounds": rounds}

    def load_state_dict(self, saved):
        global rounds
        rounds = saved["rounds"]


def direction():
    global rounds
    rounds += 1
    return -0.2 if rounds % 4 == 0 else 1.0


def make_job(seed: int, fixed: bool = False) -> Job:
    global rounds
    rounds = 0
    torch.manual_seed(seed)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    clock = Clock()
    x = torch.randn(STEPS, 8, 4)

    def step():
        loss = direction() * nn.functional.mse_loss(model(x[clock.steps]), x[clock.steps][:, :1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.steps += 1
        return {"loss": loss.item()}

    components = {"model": model, "optimizer": optimizer, "clock": Attributes(clock, "steps")}
    if fixed:
        components["rounds"] = Rounds()
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
