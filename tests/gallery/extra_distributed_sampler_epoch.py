"""The loop tells the sampler the epoch, but by a count of its own passes, which every resume starts from
zero."""

import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from resume_audit import Attributes, Job

STEPS = 12
INTERRUPT = [8]  # the end of the second epoch
LOST = ["epoch", "sampler"]
PER_EPOCH = 4


class Clock:
    steps = 0


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    x = torch.randn(32, 4)
    dataset = TensorDataset(x, x.norm(dim=1, keepdim=True))
    sampler = DistributedSampler(dataset, num_replicas=2, rank=0, seed=seed)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler, generator=torch.Generator())
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    clock = Clock()

    def fit():
        epoch = clock.steps // PER_EPOCH if fixed else 0
        while True:
            sampler.set_epoch(epoch)
            for inputs, targets in loader:
                loss = nn.functional.mse_loss(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                clock.steps += 1
                yield {"loss": loss.item(), "inputs": inputs.sum().item()}
            epoch += 1

    run = fit()
    components = {"model": model, "optimizer": optimizer, "clock": Attributes(clock, "steps")}
    return Job(components, step=lambda: next(run))


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
