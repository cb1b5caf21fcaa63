"""A loader with worker processes is in the middle of a pass; a resumed run starts its pass, and its workers,
anew."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from resume_audit import Attributes, Job

STEPS = 8
INTERRUPT = [3]
LOST = ["loader", "batches"]
PER_PASS = 5


class Clock:
    steps = 0


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    x = torch.randn(20, 4)
    shuffle = torch.Generator()
    loader = DataLoader(TensorDataset(x), batch_size=4, shuffle=True, num_workers=1, generator=shuffle)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    clock = Clock()

    def passes():
        while True:
            number, skip = divmod(clock.steps, PER_PASS) if fixed else (passes.begun, 0)
            shuffle.manual_seed(seed + number)
            passes.begun += 1
            for at, (batch,) in enumerate(loader):
                if at >= skip:
                    yield batch

    passes.begun = 0
    batches = passes()

    def step():
        batch = next(batches)
        loss = nn.functional.mse_loss(model(batch), batch.sum(1, keepdim=True).sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.steps += 1
        return {"loss": loss.item(), "batch": batch.sum().item()}

    return Job({"model": model, "optimizer": optimizer, "clock": Attributes(clock, "steps")}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
