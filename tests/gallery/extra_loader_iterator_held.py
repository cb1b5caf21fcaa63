"""The loop holds `iter(loader)` and asks for a new one when it runs dry; a resume in the middle of a pass
begins a pass with another order."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from resume_audit import Job, Rng

STEPS = 12
INTERRUPT = [6]
LOST = ["loader", "iterator", "sampler", "batches"]


class Endless:
    """Batches pass after pass; `skip` continues a pass where it was."""

    def __init__(self, loader, resumable):
        self.loader, self.resumable = loader, resumable
        self.iterator, self.taken, self.begun = None, 0, None

    def restart(self):
        self.begun = torch.get_rng_state()
        self.iterator, self.taken = iter(self.loader), 0

    def __next__(self):
        if self.iterator is None:
            self.restart()
        try:
            batch = next(self.iterator)
        except StopIteration:
            self.restart()
            batch = next(self.iterator)
        self.taken += 1
        return batch

    def state_dict(self):
        return {"taken": self.taken, "begun": self.begun} if self.resumable else {}

    def load_state_dict(self, saved):
        if self.resumable and saved["begun"] is not None:
            torch.set_rng_state(saved["begun"])
            self.restart()
            for _ in range(saved["taken"]):
                next(self)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    x = torch.randn(20, 4)
    loader = DataLoader(TensorDataset(x, x.norm(dim=1)), batch_size=4, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = Endless(loader, resumable=fixed)

    def step():
        inputs, targets = next(batches)
        loss = nn.functional.mse_loss(model(inputs).squeeze(1), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item(), "inputs": inputs.sum().item()}

    return Job({"model": model, "optimizer": optimizer, "batches": batches, "rng": Rng()}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
