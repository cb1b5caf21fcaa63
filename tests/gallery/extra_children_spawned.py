"""Every step spawns two children of a NumPy generator; the generator's state is saved, but how many children it has
had is no part of that, and the resumed run gets the first ones again."""

import numpy as np
import torch
from torch import nn

from resume_audit import Generator, Job

STEPS = 10
INTERRUPT = [4]
LOST = ["seed_seq"]


class Children:
    def __init__(self, generator):
        self.seeds = generator.bit_generator.seed_seq

    def state_dict(self):
        return {"spawned": self.seeds.n_children_spawned}

    def load_state_dict(self, saved):
        self.seeds.spawn(saved["spawned"] - self.seeds.n_children_spawned)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    data, noise = torch.randn(8, 4), np.random.default_rng(seed)
    model = nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)

    def step():
        parts = zip(data.chunk(2), noise.spawn(2), strict=True)
        x = torch.cat([part + torch.from_numpy(child.normal(0, 0.3, part.shape)).float() for part, child in parts])
        loss = (model(x) - data).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    parts = {"model": model, "optimizer": optimizer, "noise": Generator(noise)}
    return Job(parts | ({"children": Children(noise)} if fixed else {}), step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
