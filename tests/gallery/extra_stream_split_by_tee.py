"""One stream of rows is split by `itertools.tee` for the model and for its critic, who read it at different paces;
the resumed run has both at its beginning."""

import itertools

import torch
from torch import nn

from resume_audit import Job

STEPS = 8
INTERRUPT = [3]
LOST = ["for_model", "for_critic"]


class Streams:
    def __init__(self, rows):
        self.for_model, self.for_critic = itertools.tee(rows)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    streams = Streams(iter(list(torch.randn(32, 4))))
    model, critic = nn.Linear(4, 4), nn.Linear(4, 1)
    optimizer = torch.optim.Adam([*model.parameters(), *critic.parameters()], lr=0.05)
    done = 0

    def step():
        nonlocal done
        x = torch.stack([next(streams.for_model), next(streams.for_model)])
        y = next(streams.for_critic)
        loss = (model(x) - x.flip(1)).square().mean() + (critic(y) - y.sum()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
        return {"loss": loss.item()}

    def save(path):
        torch.save([model.state_dict(), critic.state_dict(), optimizer.state_dict(), done], path)

    def load(path):
        nonlocal done
        *states, done = torch.load(path)
        for part, state in zip((model, critic, optimizer), states, strict=True):
            part.load_state_dict(state)
        if fixed:
            for _ in range(done):
                next(streams.for_model), next(streams.for_model), next(streams.for_critic)

    return Job({"model": model, "critic": critic, "optimizer": optimizer}, step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
