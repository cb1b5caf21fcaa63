"""How many steps forward a batch is rolled out is drawn by a sampler shared by training and evaluation. It is
restored by replaying its draws from the run's seed; but each evaluation has reseeded it in place, and so the
replay is wrong."""

import torch
from torch import nn

from resume_audit import Job

REPORT = "ai2cm/ace#1170"
STEPS = 12
INTERRUPT = [6]
LOST = ["sampler", "rng", "draws", "generator"]
EVALUATE_EVERY = 4


class RolloutSampler:
    """Draws the number of forward steps; its state is the count of draws since the seed of the run."""

    def __init__(self, seed, longest=4):
        self.seed, self.longest = seed, longest
        self.load_state_dict({"draws": 0})

    def draw(self):
        self.draws += 1
        return int(torch.randint(1, self.longest + 1, (), generator=self.generator))

    def reseed(self, seed):
        self.generator.manual_seed(seed)

    def state_dict(self):
        return {"draws": self.draws}

    def load_state_dict(self, saved):
        self.generator = torch.Generator().manual_seed(self.seed)
        self.draws = 0
        while self.draws < saved["draws"]:
            self.draw()


class Emulator(nn.Module):
    def __init__(self, width=5):
        super().__init__()
        self.tendency = nn.Sequential(nn.Linear(width, 12), nn.Tanh(), nn.Linear(12, width))
        self.register_buffer("batches_seen", torch.tensor(0))

    def forward(self, state, steps):
        for _ in range(steps):
            state = state + 0.2 * self.tendency(state)
        return state


class Trainer:
    def __init__(self, seed, separate_evaluation_sampler):
        self.model = Emulator()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.02)
        self.sampler = RolloutSampler(seed)
        self.evaluation_sampler = RolloutSampler(seed) if separate_evaluation_sampler else self.sampler
        self.states = torch.randn(24, 5)

    def loss(self, rows, steps):
        target = self.states[rows] * 0.9**steps
        return nn.functional.mse_loss(self.model(self.states[rows], steps), target)

    @torch.no_grad()
    def evaluate(self):
        self.evaluation_sampler.reseed(0)  # the same rollouts every time
        return sum(self.loss(slice(16, 24), self.evaluation_sampler.draw()).item() for _ in range(3))

    def step(self):
        steps, first = self.sampler.draw(), 4 * int(self.model.batches_seen % 4)
        loss = self.loss(slice(first, first + 4), steps)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.model.batches_seen += 1
        metrics = {"loss": loss.item(), "rollout": float(steps)}
        if self.model.batches_seen % EVALUATE_EVERY == 0:
            metrics["evaluation"] = self.evaluate()
        return metrics


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    trainer = Trainer(seed, separate_evaluation_sampler=fixed)
    parts = {"model": trainer.model, "optimizer": trainer.optimizer, "sampler": trainer.sampler}
    return Job(parts, trainer.step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
