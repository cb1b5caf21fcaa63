"""Transitions to learn from wait in a deque and are drawn by a `random.Random` of the agent's own; the
checkpoint has the generator but an empty buffer."""

import collections
import random

import torch
from torch import nn

from resume_audit import Job

STEPS = 12
INTERRUPT = [5]
LOST = ["replay", "buffer"]


class Replay:
    def __init__(self, seed, with_items):
        self.items = collections.deque(maxlen=24)
        self.draw = random.Random(seed)
        self.with_items = with_items

    def state_dict(self):
        state = {"draw": self.draw.getstate()}
        return state | {"items": list(self.items)} if self.with_items else state

    def load_state_dict(self, saved):
        self.draw.setstate(saved["draw"])
        if self.with_items:
            self.items = collections.deque(saved["items"], maxlen=24)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    policy = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
    replay = Replay(seed, with_items=fixed)
    world = nn.Module()
    world.register_buffer("state", torch.ones(3))

    def step():
        for _ in range(4):
            with torch.no_grad():
                action = policy(world.state).argmax()
            following = (world.state * 0.9 + 0.2 * action).sin()
            replay.items.append((world.state.clone(), int(action), float(following.sum())))
            world.state = following
        picked = [replay.draw.choice(replay.items) for _ in range(6)]
        states = torch.stack([state for state, _, _ in picked])
        values = policy(states)[range(6), [action for _, action, _ in picked]]
        loss = nn.functional.mse_loss(values, torch.tensor([reward for _, _, reward in picked]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    return Job({"policy": policy, "optimizer": optimizer, "replay": replay, "world": world}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
