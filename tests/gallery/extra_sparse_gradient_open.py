"""An embedding with sparse gradients is updated every third step; the gradients gathered between the updates are in
no checkpoint."""

import torch
from torch import nn

from resume_audit import Attributes, Gradients, Job

STEPS = 12
INTERRUPT = [5]
LOST = ["grad"]


class Run:
    step = 0


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    words, run = nn.Embedding(7, 3, sparse=True), Run()
    optimizer = torch.optim.SparseAdam(words.parameters(), lr=0.05)

    def step():
        picked = torch.tensor([run.step % 7, run.step * 3 % 7])
        loss = (words(picked) - 1).square().mean()
        loss.backward()
        run.step += 1
        if run.step % 3 == 0:
            optimizer.step()
            optimizer.zero_grad()
        return {"loss": loss.item()}

    parts = {"words": words, "optimizer": optimizer, "run": Attributes(run, "step")}
    return Job(parts | ({"gradients": Gradients(words)} if fixed else {}), step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
