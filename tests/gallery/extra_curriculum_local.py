"""How hard the examples are is a local variable of the loop, raised whenever the loss has fallen; a resumed
loop starts with the easy ones."""

import torch
from torch import nn

from resume_audit import Job

STEPS = 12
INTERRUPT = [6]
LOST = ["difficulty", "curriculum"]


class Curriculum:
    def __init__(self):
        self.difficulty, self.batch = 1.0, 0

    def state_dict(self):
        return {"difficulty": self.difficulty, "batch": self.batch}

    def load_state_dict(self, saved):
        self.difficulty, self.batch = saved["difficulty"], saved["batch"]


class Position:
    batch = 0

    def state_dict(self):
        return {"batch": self.batch}

    def load_state_dict(self, saved):
        self.batch = saved["batch"]


def train(model, optimizer, position, seed):
    difficulty = getattr(position, "difficulty", 1.0)
    while True:
        x = torch.randn(8, 3, generator=torch.Generator().manual_seed(seed + position.batch))
        loss = nn.functional.mse_loss(model(x).squeeze(1), (difficulty * x).sum(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        position.batch += 1
        if loss.item() < 4 * difficulty:
            difficulty *= 1.25
        if hasattr(position, "difficulty"):
            position.difficulty = difficulty
        yield {"loss": loss.item()}


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    position = Curriculum() if fixed else Position()
    loop = train(model, optimizer, position, seed)
    return Job({"model": model, "optimizer": optimizer, "position": position}, step=lambda: next(loop))


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
