"""Lines are read from an open file; how far the reading has come is the file's own business."""

import io

import torch
from torch import nn

from resume_audit import Job

STEPS = 10
INTERRUPT = [4]
LOST = ["corpus"]


class Corpus:
    """A file in memory, whose position is state."""

    def __init__(self, text):
        self.file = io.StringIO(text)

    def state_dict(self):
        return {"position": self.file.tell()}

    def load_state_dict(self, saved):
        self.file.seek(saved["position"])


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    lines = [" ".join(str(int(token)) for token in torch.randint(9, (8,))) for _ in range(STEPS)]
    corpus = Corpus("\n".join(lines))
    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)

    def step():
        tokens = torch.tensor([int(token) for token in corpus.file.readline().split()])
        loss = nn.functional.cross_entropy(model(tokens[:-1]), tokens[1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    components = {"model": model, "optimizer": optimizer}
    if fixed:
        components["corpus"] = corpus
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
