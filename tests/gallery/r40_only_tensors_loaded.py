"""The reader fills a freshly made optimizer state in place. Tensors are copied; plain numbers such as a
group's `lr` are not, so the first resumed step runs at the constructor's learning rate until the scheduler
writes the right one."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from resume_audit import Job

REPORT = "pytorch/pytorch#129079"
STEPS = 10
INTERRUPT = [5]
LOST = ["lr", "param_groups", "optimizer"]


def materialize(optimizer):
    """Give every parameter its state tensors, changing no weight."""
    rates = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] = 0.0
        for p in group["params"]:
            p.grad = torch.zeros_like(p)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    for group, lr in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = lr


def read_into(target, stored, plain_too):
    items = target.items() if isinstance(target, dict) else enumerate(target)
    for key, value in list(items):
        if torch.is_tensor(value):
            value.copy_(stored[key])
        elif isinstance(value, (dict, list)):
            read_into(value, stored[key], plain_too)
        elif plain_too:
            target[key] = stored[key]


class Position:
    def __init__(self):
        self.batch = torch.tensor(0)

    def state_dict(self):
        return {"batch": self.batch.clone()}

    def load_state_dict(self, saved):
        self.batch.copy_(saved["batch"])


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 2))
    decayed = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed}, {"params": rest, "weight_decay": 0.0}], lr=0.1)
    scheduler = LambdaLR(optimizer, lambda epoch: 0.7**epoch)
    position = Position()
    components = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "position": position}

    def step():
        x = torch.randn(8, 6, generator=torch.Generator().manual_seed(seed + 7 * int(position.batch)))
        loss = nn.functional.mse_loss(model(x), x[:, :2] * x[:, 2:4])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lr = optimizer.param_groups[0]["lr"]
        scheduler.step()
        position.batch += 1
        return {"loss": loss.item(), "lr": lr}

    def save(path):
        torch.save({name: component.state_dict() for name, component in components.items()}, path)

    def load(path):
        stored = torch.load(path)
        for name in ("model", "scheduler", "position"):
            components[name].load_state_dict(stored[name])
        materialize(optimizer)
        state = optimizer.state_dict()
        read_into(state, stored["optimizer"], plain_too=fixed)
        optimizer.load_state_dict(state)

    return Job(components, step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
