"""Examples are used once each; which ones were is a set that is not saved, so a resumed run never runs out of
them."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [4]
LOST = ["used"]


class Clock:
    steps = 0


class Used:
    def __init__(self, used):
        self.used = used

    def state_dict(self):
        return {"used": sorted(self.used)}

    def load_state_dict(self, saved):
        self.used.clear()
        self.used.update(saved["used"])


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    x = torch.randn(12, 3)
    model, clock, used = nn.Linear(3, 1), Clock(), set()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        clock.steps += 1
        errors = (model(x).squeeze(1) - x.norm(dim=1)).square()
        free = [row for row in errors.argsort(descending=True).tolist() if row not in used]
        if not free:
            return {"exhausted": 1.0}
        used.update(free[:2])
        optimizer.zero_grad()
        errors[free[:2]].mean().backward()
        optimizer.step()
        return {"first": float(free[0])}

    components = {"model": model, "optimizer": optimizer, "clock": Attributes(clock, "steps")}
    if fixed:
        components["used"] = Used(used)
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
