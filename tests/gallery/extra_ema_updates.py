"""The average's decay warms up with a count of updates that its state does not hold: after a resume the
average follows the weights as closely as in the first steps."""

import copy

import torch
from torch import nn

from resume_audit import Job

STEPS = 10
INTERRUPT = [5]
LOST = ["ema.updates", "updates"]


class Ema:
    def __init__(self, model, with_count):
        self.shadow = copy.deepcopy(model).requires_grad_(False)
        self.updates, self.with_count = 0, with_count

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        decay = 0.99 * (1 - 2 ** (-self.updates / 4))
        for mine, theirs in zip(self.shadow.parameters(), model.parameters(), strict=True):
            mine.lerp_(theirs, 1 - decay)

    def state_dict(self):
        state = {"shadow": self.shadow.state_dict()}
        return state | {"updates": self.updates} if self.with_count else state

    def load_state_dict(self, saved):
        self.shadow.load_state_dict(saved["shadow"])
        if self.with_count:
            self.updates = saved["updates"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(4, 2)
    ema = Ema(model, with_count=fixed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.randn(STEPS, 6, 4)
    clock = nn.Module()
    clock.register_buffer("now", torch.tensor(0))

    def step():
        x = data[int(clock.now) % STEPS]
        loss = nn.functional.mse_loss(model(x), x[:, :2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)
        clock.now += 1
        return {"loss": loss.item(), "averaged": ema.shadow(x).sum().item()}

    return Job({"model": model, "ema": ema, "optimizer": optimizer, "clock": clock}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
