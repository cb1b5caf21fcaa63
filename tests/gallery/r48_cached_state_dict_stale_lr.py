"""The container asks the optimizer for its state once and keeps the answer. The tensors in it stay the live
ones, the learning rate is a number and stays what it was at the start; that is what every checkpoint
holds."""

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

from resume_audit import Job

REPORT = "pytorch/torchtitan#4598"
STEPS = 12
INTERRUPT = [7]
LOST = ["lr", "param_groups", "optimizer"]


class OptimizersContainer:
    """Several optimizers as one; makes their state up front, so that a checkpoint can be planned early."""

    def __init__(self, *optimizers, cache):
        self.optimizers = optimizers
        for optimizer in optimizers:
            self.materialize(optimizer)
        self.cached = self.collect() if cache else None

    @staticmethod
    def materialize(optimizer):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        before = [p.detach().clone() for p in params]
        for p in params:
            p.grad = torch.zeros_like(p)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            for p, value in zip(params, before, strict=True):
                p.copy_(value)

    def collect(self):
        return {str(number): optimizer.state_dict() for number, optimizer in enumerate(self.optimizers)}

    def state_dict(self):
        return self.cached or self.collect()

    def load_state_dict(self, saved):
        for number, optimizer in enumerate(self.optimizers):
            optimizer.load_state_dict(saved[str(number)])
        if self.cached:
            self.cached = self.collect()

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()


class TrainState:
    step = 0

    def state_dict(self):
        return {"step": torch.tensor(self.step)}

    def load_state_dict(self, saved):
        self.step = saved["step"].item()


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    embed, body = nn.Embedding(9, 6), nn.Sequential(nn.Linear(6, 12), nn.SiLU(), nn.Linear(12, 9))
    parts = [torch.optim.SGD(module.parameters(), lr=0.2, momentum=0.9) for module in (embed, body)]
    container = OptimizersContainer(*parts, cache=not fixed)
    schedulers = [StepLR(part, step_size=3, gamma=0.3) for part in parts]
    state = TrainState()
    stream = torch.randint(9, (STEPS, 21), generator=torch.Generator().manual_seed(seed + 1))

    def step():
        tokens = stream[state.step]
        loss = nn.functional.cross_entropy(body(embed(tokens[:-1])), tokens[1:])
        loss.backward()
        container.step()
        used = parts[0].param_groups[0]["lr"]
        for scheduler in schedulers:
            scheduler.step()
        state.step += 1
        return {"loss": loss.item(), "lr": used}

    components = {"embed": embed, "body": body, "optimizer": container, "train_state": state}
    components |= {f"scheduler{number}": scheduler for number, scheduler in enumerate(schedulers)}
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
