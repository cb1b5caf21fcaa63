"""Loading replaces the model by one made from the checkpoint; the optimizer goes on with the parameters of
the old one, and the new model never learns again."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [4]
LOST = ["optimizer", "model"]


class Clock:
    steps = 0


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    clock = Clock()
    x = torch.randn(STEPS, 8, 4)
    model = nn.Linear(4, 1)
    parts = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)}
    parts["clock"] = Attributes(clock, "steps")

    def step():
        batch = x[clock.steps]
        loss = nn.functional.mse_loss(parts["model"](batch), batch.norm(dim=1, keepdim=True))
        parts["optimizer"].zero_grad()
        loss.backward()
        parts["optimizer"].step()
        clock.steps += 1
        return {"loss": loss.item()}

    def save(path):
        torch.save({name: part.state_dict() for name, part in parts.items()}, path)

    def load(path):
        saved = torch.load(path)
        parts["model"] = nn.Linear(4, 1)
        parts["model"].load_state_dict(saved["model"])
        if fixed:
            parts["optimizer"] = torch.optim.SGD(parts["model"].parameters(), lr=0.1, momentum=0.9)
        parts["optimizer"].load_state_dict(saved["optimizer"])
        parts["clock"].load_state_dict(saved["clock"])

    return Job(parts, step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
