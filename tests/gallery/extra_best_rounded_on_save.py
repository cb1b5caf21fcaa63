"""The best score goes through a float32 tensor on its way into the checkpoint; comes back a little larger or
smaller, and an equal score counts as better."""

import torch
from torch import nn

from resume_audit import Job

STEPS = 10
INTERRUPT = [5]
LOST = ["best"]


class Best:
    def __init__(self, exact):
        self.exact, self.score = exact, float("inf")

    def see(self, score):
        better = score < self.score
        self.score = min(score, self.score)
        return better

    def state_dict(self):
        return {"score": torch.tensor(self.score, dtype=torch.float64 if self.exact else torch.float32)}

    def load_state_dict(self, saved):
        self.score = saved["score"].item()


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(3, 1)
    best, count = Best(exact=fixed), nn.Module()
    count.register_buffer("steps", torch.tensor(0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(STEPS, 4, 3)

    def step():
        batch = x[int(count.steps)]
        loss = nn.functional.mse_loss(model(batch), batch.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        count.steps += 1
        best.see(loss.item() * 0.3 + int(count.steps))  # the first is never beaten
        optimizer.param_groups[0]["lr"] = 0.1 * best.score
        return {"loss": loss.item(), "best": best.score}

    return Job({"model": model, "optimizer": optimizer, "best": best, "count": count}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
