"""A loss is scaled by the mean of the last four; the window comes back from JSON as a deque without its bound and
from then on grows for ever."""

import collections
import json

import torch
from torch import nn

from resume_audit import Job

STEPS = 12
INTERRUPT = [5]
LOST = ["recent"]


class Scale:
    def __init__(self):
        self.recent, self.step = collections.deque(maxlen=4), 0

    def of(self, loss):
        mean = sum(self.recent) / len(self.recent) if self.recent else loss
        self.recent.append(loss)
        return min(3.0, max(0.3, loss / mean))


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model, scale = nn.Linear(4, 4), Scale()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)

    def step():
        x = torch.randn(5, 4, generator=torch.Generator().manual_seed(scale.step))
        loss = (model(x) + x).square().mean()
        optimizer.zero_grad()
        (loss * scale.of(loss.item())).backward()
        optimizer.step()
        scale.step += 1
        return {"loss": loss.item()}

    def save(path):
        path.mkdir()
        torch.save([model.state_dict(), optimizer.state_dict()], path / "weights.pt")
        (path / "scale.json").write_text(json.dumps([list(scale.recent), scale.step]))

    def load(path):
        for part, state in zip((model, optimizer), torch.load(path / "weights.pt"), strict=True):
            part.load_state_dict(state)
        recent, scale.step = json.loads((path / "scale.json").read_text())
        scale.recent = collections.deque(recent, maxlen=4 if fixed else None)

    return Job({"model": model, "optimizer": optimizer}, step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
