"""A warm-up scheduler keeps the scheduler that follows it as an attribute, so its state contains that whole
object with the optimizer inside. After a resume the follower steers this unpickled optimizer; the real
learning rate is frozen."""

import torch
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR, LRScheduler

from resume_audit import Job

REPORT = "ildoonet/pytorch-gradual-warmup-lr#27"
STEPS = 12
INTERRUPT = [5]
LOST = ["scheduler", "after", "lr"]


class GradualWarmup(LRScheduler):
    """Linear growth to the base rate, then whatever `after` does."""

    def __init__(self, optimizer, warmup, after, nested_state):
        self.warmup, self.after, self.nested_state = warmup, after, nested_state
        super().__init__(optimizer)

    def get_lr(self):
        share = min(1.0, (self.last_epoch + 1) / self.warmup)
        return [base * share for base in self.base_lrs]

    def step(self):
        if self.last_epoch + 1 < self.warmup:
            super().step()
        else:
            self.last_epoch += 1
            self.after.step()

    def state_dict(self):
        state = super().state_dict()
        if self.nested_state:
            state["after"] = self.after.state_dict()
        return state

    def load_state_dict(self, saved):
        if self.nested_state:
            saved = dict(saved)
            self.after.load_state_dict(saved.pop("after"))
        super().load_state_dict(saved)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    scheduler = GradualWarmup(optimizer, 3, ExponentialLR(optimizer, gamma=0.8), nested_state=fixed)
    trained = 0

    def step():
        nonlocal trained
        x = torch.randn(8, 5, generator=torch.Generator().manual_seed(seed + 101 * trained))
        loss = nn.functional.mse_loss(model(x).squeeze(1), x.amin(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lr = optimizer.param_groups[0]["lr"]
        scheduler.step()
        trained += 1
        return {"loss": loss.item(), "lr": lr}

    def save(path):
        parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
        torch.save({name: part.state_dict() for name, part in parts.items()} | {"trained": trained}, path)

    def load(path):
        nonlocal trained
        states = torch.load(path, weights_only=False)  # our own file
        model.load_state_dict(states["model"])
        optimizer.load_state_dict(states["optimizer"])
        scheduler.load_state_dict(states["scheduler"])
        trained = states["trained"]

    return Job({"model": model, "optimizer": optimizer, "scheduler": scheduler}, step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
