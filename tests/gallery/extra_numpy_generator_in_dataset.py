"""The dataset adds noise from a NumPy generator of its own; the checkpoint has the generators of the process
only."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from resume_audit import Attributes, Generator, Job, Rng

STEPS = 10
INTERRUPT = [4]
LOST = ["noise", "generator", "dataset"]


class Noisy(Dataset):
    def __init__(self, x, noise):
        self.x, self.noise = x, noise

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i] + torch.from_numpy(self.noise.normal(0, 0.1, 3)).float()


class Clock:
    steps = 0


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    noise = np.random.default_rng(seed)
    dataset = Noisy(torch.randn(12, 3), noise)
    loader = DataLoader(dataset, batch_size=4, shuffle=False, generator=torch.Generator())
    model = nn.Sequential(nn.Linear(3, 6), nn.Dropout(0.2), nn.Linear(6, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    clock = Clock()

    def step():
        # One pass per step: a pass begins and ends inside it.
        losses = []
        for x in loader:
            loss = nn.functional.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        clock.steps += 1
        return {"loss": sum(losses)}

    components = {"model": model, "optimizer": optimizer, "clock": Attributes(clock, "steps"), "rng": Rng()}
    if fixed:
        components["noise"] = Generator(noise)
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
