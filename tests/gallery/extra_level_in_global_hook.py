"""A hook registered for all modules at once tracks the level of the activations and divides them by it; no module
and no checkpoint knows of that level."""

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from resume_audit import Job, Rng

STEPS = 10
INTERRUPT = [4]
LOST = ["level"]


class Level:
    def __init__(self):
        self.mean = 1.0

    def __call__(self, module, _, output):
        if not isinstance(module, nn.ReLU):
            return None
        self.mean = 0.8 * self.mean + 0.2 * output.detach().mean().item()
        return output / (0.5 + self.mean)

    def state_dict(self):
        return {"mean": self.mean}

    def load_state_dict(self, saved):
        self.mean = saved["mean"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    level = Level()
    register_module_forward_hook(lambda *call: level(*call))
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)

    def step():
        x = torch.randn(8, 4)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    parts = {"model": model, "optimizer": optimizer, "rng": Rng()}
    return Job(parts | ({"level": level} if fixed else {}), step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
