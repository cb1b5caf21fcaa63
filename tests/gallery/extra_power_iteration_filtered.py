"""The vectors of the power iteration are dropped from the checkpoint as derived data; they are not derived
from the weights but from all earlier ones."""

import torch
from torch import nn
from torch.nn.utils import parametrizations

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [5]
LOST = ["_u", "_v", "parametrizations"]


class Clock:
    steps = 0


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(parametrizations.spectral_norm(nn.Linear(5, 7)), nn.ReLU(), nn.Linear(7, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    x = torch.randn(16, 5)
    clock = Clock()
    components = {"model": model, "optimizer": optimizer, "clock": Attributes(clock, "steps")}

    def step():
        rows = torch.arange(4).add(4 * clock.steps) % 16
        loss = nn.functional.mse_loss(model(x[rows]).squeeze(1), x[rows].amax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.steps += 1
        return {"loss": loss.item()}

    def save(path):
        state = {name: component.state_dict() for name, component in components.items()}
        if not fixed:
            state["model"] = {k: v for k, v in state["model"].items() if not k.endswith(("_u", "_v"))}
        torch.save(state, path)

    def load(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"], strict=fixed)
        optimizer.load_state_dict(saved["optimizer"])
        components["clock"].load_state_dict(saved["clock"])

    return Job(components, step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
