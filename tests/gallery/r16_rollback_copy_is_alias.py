"""A guard against loss spikes remembers the last good state as plain `state_dict()`: those tensors are the
live ones, so a rollback does nothing, until a resume has turned them into real copies."""

import copy

import torch
from torch import nn

from resume_audit import Job

REPORT = "pytorch/pytorch#196083"
STEPS = 12
INTERRUPT = [6]
LOST = ["guard", "good", "alias"]
POISONED = 7  # number of a batch with broken targets


class SpikeGuard:
    """Every fourth step is remembered; a loss above `ceiling` brings the remembered step back."""

    def __init__(self, model, optimizer, ceiling, independent):
        self.model, self.optimizer, self.ceiling = model, optimizer, ceiling
        self.copied = copy.deepcopy if independent else (lambda state: state)
        self.remember()

    def remember(self):
        self.good = self.copied({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()})

    def roll_back(self):
        self.model.load_state_dict(self.good["model"])
        self.optimizer.load_state_dict(self.copied(self.good["optimizer"]))

    def state_dict(self):
        return {"good": self.good}

    def load_state_dict(self, saved):
        self.good = saved["good"]


class Counter:
    value = 0

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, saved):
        self.value = saved["value"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    guard = SpikeGuard(model, optimizer, ceiling=100.0, independent=fixed)
    counter = Counter()

    def batch(number):
        generator = torch.Generator().manual_seed(seed + 17 * number)
        x = torch.randn(8, 4, generator=generator)
        y = x.sin().sum(1, keepdim=True)
        return x, y + 1e3 if number == POISONED else y

    def step():
        x, y = batch(counter.value)
        loss = nn.functional.mse_loss(model(x), y)
        counter.value += 1
        if loss.item() > guard.ceiling:
            guard.roll_back()
            return {"loss": loss.item(), "rolled_back": 1.0}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if counter.value % 4 == 0:
            guard.remember()
        return {"loss": loss.item(), "rolled_back": 0.0}

    return Job({"model": model, "optimizer": optimizer, "counter": counter, "guard": guard}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
