"""The target network is copied from the online one at every fourth update; loading copies it too, at once."""

import copy

import torch
from torch import nn

from resume_audit import Job

STEPS = 12
INTERRUPT = [6]
LOST = ["target"]


class Agent:
    def __init__(self):
        self.online = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=0.02)
        self.updates = 0

    def learn(self, states):
        with torch.no_grad():
            wanted = states.sum(1) + 0.9 * self.target(states.roll(1, 0)).amax(1)
        loss = nn.functional.smooth_l1_loss(self.online(states).amax(1), wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % 4 == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    agent = Agent()
    states = torch.randn(STEPS, 8, 3)

    def save(path):
        parts = {"online": agent.online, "optimizer": agent.optimizer, "target": agent.target}
        torch.save({n: p.state_dict() for n, p in parts.items()} | {"updates": agent.updates}, path)

    def load(path):
        saved = torch.load(path)
        agent.online.load_state_dict(saved["online"])
        agent.target.load_state_dict(saved["target" if fixed else "online"])
        agent.optimizer.load_state_dict(saved["optimizer"])
        agent.updates = saved["updates"]

    def step():
        return {"loss": agent.learn(states[agent.updates])}

    return Job({"online": agent.online, "optimizer": agent.optimizer}, step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
