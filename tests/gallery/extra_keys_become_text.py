"""How often each class was seen is kept by number; JSON makes text of the numbers, and after a resume no
class has ever been seen."""

import collections
import json

import torch
from torch import nn

from resume_audit import Job

STEPS = 10
INTERRUPT = [5]
LOST = ["seen"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(6, 4, 4)
    seen = collections.Counter()

    def step():
        batch = x[sum(seen.values()) // 4 % 6]
        labels = batch[:, :3].argmax(1)
        weight = torch.tensor([1 / (1 + seen[label]) for label in range(3)])
        loss = nn.functional.cross_entropy(model(batch), labels, weight=weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.update(labels.tolist())
        return {"loss": loss.item()}

    def save(path):
        path.mkdir()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path / "weights.pt")
        (path / "seen.json").write_text(json.dumps(seen))

    def load(path):
        saved = torch.load(path / "weights.pt")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        counts = json.loads((path / "seen.json").read_text())
        seen.update({int(label): count for label, count in counts.items()} if fixed else counts)

    return Job({"model": model, "optimizer": optimizer}, step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
