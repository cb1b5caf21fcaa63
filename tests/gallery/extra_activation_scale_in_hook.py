"""A forward hook divides activations by the largest that it has seen, which it keeps in its closure."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [5]
LOST = ["largest"]


class Clock:
    steps = 0


class Largest:
    def __init__(self, hook):
        self.hook = hook

    def state_dict(self):
        return {"largest": self.hook.get()}

    def load_state_dict(self, saved):
        self.hook.put(saved["largest"])


def normaliser():
    largest = 0.0

    def hook(module, inputs, output):
        nonlocal largest
        largest = max(largest, output.detach().abs().max().item())
        return output / largest

    def put(value):
        nonlocal largest
        largest = value

    hook.get, hook.put = lambda: largest, put
    return hook


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
    hook = normaliser()
    model[0].register_forward_hook(hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    clock = Clock()
    x = torch.randn(STEPS, 8, 4) * torch.linspace(3, 1, STEPS)[:, None, None]

    def step():
        loss = nn.functional.mse_loss(model(x[clock.steps]), x[clock.steps].sum(1, keepdim=True).sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.steps += 1
        return {"loss": loss.item()}

    components = {"model": model, "optimizer": optimizer, "clock": Attributes(clock, "steps")}
    if fixed:
        components["largest"] = Largest(hook)
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
