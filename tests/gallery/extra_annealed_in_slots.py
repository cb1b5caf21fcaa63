"""The temperature of the relaxed samples is annealed in a dataclass with slots, which counts as configuration
and is not saved."""

from dataclasses import dataclass

import torch
from torch import nn

from resume_audit import Attributes, Job, Rng

STEPS = 10
INTERRUPT = [5]
LOST = ["temperature"]


@dataclass(slots=True)
class Relaxation:
    temperature: float = 1.0
    rate: float = 0.8


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(4, 5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    relaxation = Relaxation()
    x = torch.randn(8, 4)

    def step():
        soft = nn.functional.gumbel_softmax(model(x), tau=relaxation.temperature)
        loss = nn.functional.mse_loss(soft[:, :4], x.softmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        relaxation.temperature *= relaxation.rate
        return {"loss": loss.item()}

    components = {"model": model, "optimizer": optimizer, "rng": Rng("torch")}
    if fixed:
        components["relaxation"] = Attributes(relaxation, "temperature")
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
