"""A loader with two workers keeps only the state of the worker that delivered last and gives it to both on
resume: the other worker loses its place and its stream of augmentations. The workers are simulated, one
after the other."""

import torch
from torch import nn

from resume_audit import Job

REPORT = "Lightning-AI/pytorch-lightning#12285"
STEPS = 12
INTERRUPT = [5]
LOST = ["worker", "loader", "rng", "position"]


class Worker:
    """Serves every n-th row of the data, augmented by numbers of its own generator."""

    def __init__(self, data, number, workers, seed):
        self.rows = data[number::workers]
        self.position = 0
        self.generator = torch.Generator().manual_seed(seed + number)

    def batch(self, size):
        picked = self.rows[torch.arange(self.position, self.position + size) % len(self.rows)]
        self.position += size
        return picked, picked + 0.3 * torch.randn(picked.shape, generator=self.generator)

    def state_dict(self):
        return {"position": self.position, "rng": self.generator.get_state()}

    def load_state_dict(self, saved):
        self.position = saved["position"]
        self.generator.set_state(saved["rng"])


class WorkerLoader:
    def __init__(self, data, num_workers, seed, all_states):
        self.workers = [Worker(data, number, num_workers, seed * 1009) for number in range(num_workers)]
        self.all_states = all_states
        self.latest = num_workers - 1

    def __next__(self):
        self.latest = (self.latest + 1) % len(self.workers)
        return self.workers[self.latest].batch(4)

    def state_dict(self):
        if self.all_states:
            return {"latest": self.latest, "workers": [worker.state_dict() for worker in self.workers]}
        return {"latest": self.latest, "worker": self.workers[self.latest].state_dict()}

    def load_state_dict(self, saved):
        self.latest = saved["latest"]
        states = saved["workers"] if self.all_states else [saved["worker"]] * len(self.workers)
        for worker, state in zip(self.workers, states, strict=True):
            worker.load_state_dict(state)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    data = torch.randn(44, 6).cumsum(1)
    model = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 6))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    loader = WorkerLoader(data, num_workers=2, seed=seed, all_states=fixed)

    def step():
        clean, noisy = next(loader)
        loss = nn.functional.mse_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item(), "batch": noisy.sum().item()}

    return Job({"model": model, "optimizer": optimizer, "loader": loader}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
