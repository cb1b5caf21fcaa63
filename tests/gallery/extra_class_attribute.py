"""How strongly inputs are augmented grows with a count that lives on the class, where no instance's state
dict sees it."""

import torch
from torch import nn

from resume_audit import Job

STEPS = 10
INTERRUPT = [5]
LOST = ["calls", "Augment"]


class Augment:
    calls = 0

    def __init__(self, generator, with_calls):
        self.generator, self.with_calls = generator, with_calls
        Augment.calls = 0

    def __call__(self, x):
        Augment.calls += 1
        return x + 0.05 * Augment.calls * torch.randn(x.shape, generator=self.generator)

    def state_dict(self):
        state = {"generator": self.generator.get_state()}
        return state | {"calls": Augment.calls} if self.with_calls else state

    def load_state_dict(self, saved):
        self.generator.set_state(saved["generator"])
        if self.with_calls:
            Augment.calls = saved["calls"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(3, 3)
    x = torch.randn(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    augment = Augment(torch.Generator().manual_seed(seed), with_calls=fixed)

    def step():
        loss = nn.functional.mse_loss(model(augment(x)), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer, "augment": augment}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
