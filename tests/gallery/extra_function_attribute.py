"""The step function counts itself in an attribute of its own and trains the critic at every third call."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [4]
LOST = ["calls"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    actor, critic = nn.Linear(3, 2), nn.Linear(3, 1)
    optimizers = {n: torch.optim.SGD(m.parameters(), lr=0.1) for n, m in (("actor", actor), ("critic", critic))}
    x = torch.randn(16, 3)

    def step():
        step.calls += 1
        value = critic(x).squeeze(1)
        loss = (actor(x).log_softmax(1)[:, 0] * value.detach()).mean()
        name = "actor"
        if step.calls % 3 == 0:
            loss, name = nn.functional.mse_loss(value, x.sum(1)), "critic"
        optimizers[name].zero_grad()
        loss.backward()
        optimizers[name].step()
        return {"loss": loss.item()}

    step.calls = 0
    components = {"actor": actor, "critic": critic, **{f"{n}_optimizer": o for n, o in optimizers.items()}}
    if fixed:
        components["calls"] = Attributes(step, "calls")
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
