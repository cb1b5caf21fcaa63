"""Checkpoints are written by the epoch-end callbacks, which run before the scheduler's step: the resumed run
goes on with the next epoch, but its MultiStepLR is one epoch behind."""

import torch
from torch import nn
from torch.optim.lr_scheduler import MultiStepLR

from resume_audit import Job

REPORT = "Lightning-AI/pytorch-lightning#4655"
STEPS = 9  # epochs
INTERRUPT = [3]
LOST = ["scheduler", "last_epoch", "lr"]


class EpochCounter:
    def __init__(self):
        self.current = 0

    def state_dict(self):
        return {"current": self.current}

    def load_state_dict(self, saved):
        self.current = saved["current"]


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 9)
        self.out = nn.Linear(9, 2)

    def forward(self, x):
        return self.out(torch.relu(self.body(x)))


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = Regressor()
    x = torch.randn(24, 6)
    y = torch.stack([x.sum(1), x.norm(dim=1)], 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.8)
    scheduler = MultiStepLR(optimizer, milestones=[4, 7], gamma=0.1)
    epoch = EpochCounter()

    def train_one_epoch():
        generator = torch.Generator().manual_seed(seed + 31 * epoch.current)
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(8):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total / 3

    def fit():
        while True:
            metrics = {"lr": optimizer.param_groups[0]["lr"], "loss": train_one_epoch()}
            epoch.current += 1
            if fixed:
                scheduler.step()
                yield metrics
            else:
                yield metrics  # epoch-end callbacks, the checkpoint among them
                scheduler.step()

    run = fit()
    components = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "epoch": epoch}
    return Job(components, step=lambda: next(run))


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
