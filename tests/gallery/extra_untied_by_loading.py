"""Loading puts new parameters in place of the old ones, one for each name: the head, which was the
embedding's own weight, is one of its own afterwards, and the optimizer trains neither as before."""

import torch
from torch import nn

from resume_audit import Attributes, Job

STEPS = 10
INTERRUPT = [4]
LOST = ["head", "embed"]


class Clock:
    steps = 0


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.ModuleDict({"embed": nn.Embedding(9, 5), "head": nn.Linear(5, 9, bias=False)})
    model["head"].weight = model["embed"].weight
    parts = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.2)}
    clock = Clock()
    parts["clock"] = Attributes(clock, "steps")
    tokens = torch.randint(9, (STEPS, 12))

    def step():
        row = tokens[clock.steps]
        loss = nn.functional.cross_entropy(model["head"](model["embed"](row[:-1])), row[1:])
        parts["optimizer"].zero_grad()
        loss.backward()
        parts["optimizer"].step()
        clock.steps += 1
        return {"loss": loss.item()}

    def save(path):
        torch.save({name: part.state_dict() for name, part in parts.items()}, path)

    def load(path):
        saved = torch.load(path)
        for name in ("embed", "head"):
            model[name].weight = nn.Parameter(saved["model"][f"{name}.weight"].clone())
        if fixed:
            model["head"].weight = model["embed"].weight
        parts["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.2)
        parts["clock"].load_state_dict(saved["clock"])

    return Job(parts, step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
