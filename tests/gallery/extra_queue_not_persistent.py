"""The queue of negatives is a buffer with `persistent=False`, to keep checkpoints small; a resumed run
contrasts against the random queue of a new model."""

import torch
from torch import nn

from resume_audit import Job

STEPS = 10
INTERRUPT = [4]
LOST = ["queue"]


class Contrast(nn.Module):
    def __init__(self, persistent):
        super().__init__()
        self.encoder = nn.Linear(5, 4)
        self.register_buffer("queue", torch.randn(12, 4), persistent=persistent)
        self.register_buffer("slot", torch.tensor(0))

    def forward(self, x):
        keys = nn.functional.normalize(self.encoder(x), dim=1)
        logits = torch.cat([(keys * keys.detach().roll(1, 0)).sum(1, keepdim=True), keys @ self.queue.clone().T], 1)
        with torch.no_grad():
            self.queue[torch.arange(len(x)).add(self.slot) % 12] = keys.detach()
            self.slot.add_(len(x)).remainder_(12)
        return nn.functional.cross_entropy(logits / 0.2, torch.zeros(len(x), dtype=torch.long))


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = Contrast(persistent=fixed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(7, 4, 5)
    count = nn.Module()
    count.register_buffer("steps", torch.tensor(0))

    def step():
        loss = model(x[int(count.steps) % 7])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        count.steps += 1
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer, "count": count}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
