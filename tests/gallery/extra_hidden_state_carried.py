"""Truncated backpropagation carries the hidden state from window to window in a variable of the enclosing
function."""

import torch
from torch import nn

from resume_audit import Job

STEPS = 10
INTERRUPT = [4]
LOST = ["hidden"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    rnn, head = nn.GRU(2, 6, batch_first=True), nn.Linear(6, 2)
    optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=0.02)
    text = torch.randn(3, 4 * STEPS + 1, 2)
    hidden, at = torch.zeros(1, 3, 6), 0

    def step():
        nonlocal hidden, at
        window = text[:, 4 * at : 4 * at + 5]
        out, following = rnn(window[:, :-1], hidden)
        loss = nn.functional.mse_loss(head(out), window[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hidden, at = following.detach(), at + 1
        return {"loss": loss.item()}

    parts = {"rnn": rnn, "head": head, "optimizer": optimizer}

    def save(path):
        torch.save({name: part.state_dict() for name, part in parts.items()} | {"at": at, "hidden": hidden}, path)

    def load(path):
        nonlocal hidden, at
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        at = saved["at"]
        if fixed:
            hidden = saved["hidden"]

    return Job(parts, step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
