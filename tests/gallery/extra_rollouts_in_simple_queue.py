"""Rollouts wait in a `queue.SimpleQueue` until there are enough of them to learn from; a resumed run has those
that it collected while it was built."""

import queue

import torch
from torch import nn

from resume_audit import Job, Rng

STEPS = 10
INTERRUPT = [4]
LOST = ["rollouts"]


def refill(rollouts, items):
    while rollouts.qsize():
        rollouts.get()
    for item in items:
        rollouts.put(item)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    rollouts = queue.SimpleQueue()
    policy = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.05)
    for _ in range(3):
        rollouts.put(torch.randn(4))

    def step():
        for _ in range(2):
            rollouts.put(torch.randn(4))
        x = torch.stack([rollouts.get() for _ in range(2)])
        loss = (policy(x)[:, 0] - x.sum(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    def waiting():
        items = [rollouts.get() for _ in range(rollouts.qsize())]
        refill(rollouts, items)
        return items

    def save(path):
        torch.save([policy.state_dict(), optimizer.state_dict(), torch.get_rng_state(), waiting()], path)

    def load(path):
        weights, moments, draws, items = torch.load(path)
        policy.load_state_dict(weights)
        optimizer.load_state_dict(moments)
        torch.set_rng_state(draws)
        if fixed:
            refill(rollouts, items)

    return Job({"policy": policy, "optimizer": optimizer, "rng": Rng("torch")}, step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
