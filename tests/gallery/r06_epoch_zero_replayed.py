"""The loader seeds its shuffle by a count of its own passes; the count is in no checkpoint, so a run resumed
at an epoch boundary replays the order of epoch 0."""

import torch
from torch import nn

from resume_audit import Job

REPORT = "huggingface/accelerate#3996"
STEPS = 14
INTERRUPT = [8]  # end of the second epoch
LOST = ["iteration", "loader", "order", "sampler"]


class SeededLoader:
    """Batches of row numbers, shuffled anew in every pass from `seed + iteration`."""

    def __init__(self, rows, batch_size, seed):
        self.rows, self.batch_size, self.seed = rows, batch_size, seed
        self.iteration = 0

    def __len__(self):
        return self.rows // self.batch_size

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed + self.iteration)
        batches = torch.randperm(self.rows, generator=generator).split(self.batch_size)
        for number, batch in enumerate(batches, start=1):
            if number == len(batches):
                self.iteration += 1
            yield batch

    def state_dict(self):
        return {"iteration": self.iteration, "seed": self.seed}

    def load_state_dict(self, saved):
        self.iteration, self.seed = saved["iteration"], saved["seed"]


class Trainer:
    def __init__(self, model, optimizer, loader, data):
        self.model, self.optimizer, self.loader, self.data = model, optimizer, loader, data
        self.done = 0

    def state_dict(self):
        return {"done": self.done}

    def load_state_dict(self, saved):
        self.done = saved["done"]

    def fit(self):
        skip = self.done % len(self.loader)
        while True:
            for number, rows in enumerate(self.loader):
                if number < skip:
                    continue
                x, y = self.data[0][rows], self.data[1][rows]
                loss = nn.functional.cross_entropy(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.done += 1
                yield {"loss": loss.item(), "first_row": float(rows[0])}
            skip = 0


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 10), nn.ReLU(), nn.Linear(10, 3))
    x = torch.randn(32, 4)
    loader = SeededLoader(rows=32, batch_size=8, seed=seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    trainer = Trainer(model, optimizer, loader, (x, x[:, :3].argmax(1)))
    components = {"model": model, "optimizer": optimizer, "trainer": trainer}
    if fixed:
        components["loader"] = loader
    run = trainer.fit()
    return Job(components, step=lambda: next(run))


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
