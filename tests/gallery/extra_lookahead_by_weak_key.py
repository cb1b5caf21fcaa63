"""An optimizer wrapper keeps its slow weights in a dictionary keyed weakly by module, apart from the state
that it hands out."""

import weakref

import torch
from torch import nn

from resume_audit import Job

STEPS = 12
INTERRUPT = [5]
LOST = ["slow"]


class Lookahead:
    def __init__(self, inner, modules, every, with_slow):
        self.inner, self.every, self.with_slow = inner, every, with_slow
        self.slow = weakref.WeakKeyDictionary((m, m.weight.detach().clone()) for m in modules)
        self.steps = 0

    @torch.no_grad()
    def step(self):
        self.inner.step()
        self.steps += 1
        if self.steps % self.every == 0:
            for module, slow in self.slow.items():
                slow.lerp_(module.weight, 0.5)
                module.weight.copy_(slow)

    def state_dict(self):
        state = {"inner": self.inner.state_dict(), "steps": self.steps}
        return state | {"slow": list(self.slow.values())} if self.with_slow else state

    def load_state_dict(self, saved):
        self.inner.load_state_dict(saved["inner"])
        self.steps = saved["steps"]
        found = saved.get("slow") or [module.weight for module in self.slow]
        for slow, value in zip(self.slow.values(), found, strict=True):
            slow.copy_(value.detach())


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = Lookahead(inner, [model[0], model[2]], every=3, with_slow=fixed)
    x = torch.randn(STEPS, 8, 4)

    def step():
        batch = x[optimizer.steps]
        loss = nn.functional.mse_loss(model(batch), batch.cumsum(1)[:, 2:3])
        inner.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
