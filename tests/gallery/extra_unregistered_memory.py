"""A module keeps its memory as a plain list of tensors, which no `state_dict()` sees; its counter hides
behind two underscores."""

import torch
from torch import nn

from resume_audit import Job

STEPS = 10
INTERRUPT = [5]
LOST = ["memory", "written"]


class Remembering(nn.Module):
    def __init__(self, registered):
        super().__init__()
        self.read = nn.Linear(8, 1)
        self.registered = registered
        self.memory = [torch.zeros(4) for _ in range(3)]
        self.__written = 0

    def forward(self, x):
        mean = torch.stack(self.memory).mean(0)
        self.memory[self.__written % 3] = x.detach().mean(0)
        self.__written += 1
        return self.read(torch.cat([x, mean.expand_as(x)], 1))

    def get_extra_state(self):
        return {"memory": self.memory, "written": self.__written} if self.registered else {}

    def set_extra_state(self, saved):
        if self.registered:
            self.memory, self.__written = list(saved["memory"]), saved["written"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = Remembering(registered=fixed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    count = nn.Module()
    count.register_buffer("steps", torch.tensor(0))
    data = torch.randn(STEPS, 6, 4)

    def step():
        x = data[int(count.steps)]
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        count.steps += 1
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer, "count": count}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
