"""Only `named_parameters()` are saved: the running statistics of the batch normalisation start over, and what
is evaluated with them steers the learning rate."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [5]
LOST = ["running_mean", "running_var", "num_batches_tracked"]


class Clock:
    steps = 0


class Weights:
    def __init__(self, model, everything):
        self.model, self.everything = model, everything

    def state_dict(self):
        return self.model.state_dict() if self.everything else dict(self.model.named_parameters())

    def load_state_dict(self, saved):
        self.model.load_state_dict(saved, strict=self.everything)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    clock = Clock()
    x = 3 + torch.randn(STEPS, 8, 4)

    def step():
        batch, wanted = x[clock.steps], x[clock.steps].std(1, keepdim=True)
        loss = nn.functional.mse_loss(model(batch), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            score = nn.functional.mse_loss(model(x[0]), x[0].std(1, keepdim=True)).item()
        model.train()
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + score)
        clock.steps += 1
        return {"loss": loss.item(), "score": score}

    components = {"model": Weights(model, fixed), "optimizer": optimizer, "clock": Attributes(clock, "steps")}
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
