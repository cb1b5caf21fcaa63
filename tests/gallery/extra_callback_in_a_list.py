"""One of the trainer's callbacks raises the weight decay at every fourth batch that it sees; callbacks are
not saved."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 12
INTERRUPT = [6]
LOST = ["callbacks", "seen"]


class Log:
    def __init__(self):
        self.lines = []

    def after(self, trainer, loss):
        self.lines.append(f"{trainer.steps}: {loss:.3f}")


class Decay:
    def __init__(self):
        self.seen = 0

    def after(self, trainer, loss):
        self.seen += 1
        if self.seen % 4 == 0:
            trainer.optimizer.param_groups[0]["weight_decay"] += 0.1


class Trainer:
    def __init__(self, data):
        self.model = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.data, self.steps, self.callbacks = data, 0, [Log(), Decay()]

    def step(self):
        x = self.data[self.steps]
        loss = nn.functional.mse_loss(self.model(x), x.prod(1, keepdim=True))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        for callback in self.callbacks:
            callback.after(self, loss.item())
        return {"loss": loss.item()}


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    trainer = Trainer(torch.randn(STEPS, 6, 4))
    components = {"model": trainer.model, "optimizer": trainer.optimizer, "trainer": Attributes(trainer, "steps")}
    if fixed:
        components["decay"] = Attributes(trainer.callbacks[1], "seen")
    return Job(components, trainer.step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
