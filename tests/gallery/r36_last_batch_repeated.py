"""The batch-end callbacks, checkpointing among them, run before the batch counts as completed: the weights of
the checkpoint have seen the batch, its counter has not, and the resumed run trains on it again."""

import torch
from torch import nn

from resume_audit import Job

REPORT = "Lightning-AI/pytorch-lightning#19815"
STEPS = 11
INTERRUPT = [6]
LOST = ["completed", "progress"]


class BatchProgress:
    def __init__(self):
        self.ready, self.completed = 0, 0

    def increment_ready(self):
        self.ready += 1

    def increment_completed(self):
        self.completed += 1

    def state_dict(self):
        return {"ready": self.ready, "completed": self.completed}

    def load_state_dict(self, saved):
        self.completed = saved["completed"]
        self.ready = saved["completed"]  # what was only begun is begun again


class EpochLoop:
    def __init__(self, module, optimizer, batches, complete_first):
        self.module, self.optimizer, self.batches = module, optimizer, batches
        self.complete_first = complete_first
        self.progress = BatchProgress()

    def run(self):
        while True:
            number = self.progress.completed % len(self.batches)
            self.progress.increment_ready()
            loss = self.training_step(self.batches[number])
            metrics = {"loss": loss, "batch": float(number)}
            if self.complete_first:
                self.progress.increment_completed()
                yield metrics
            else:
                yield metrics  # on_train_batch_end: callbacks may write a checkpoint
                self.progress.increment_completed()

    def training_step(self, batch):
        x, y = batch
        loss = nn.functional.binary_cross_entropy_with_logits(self.module(x).squeeze(1), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
    x = torch.randn(9, 4, 6)
    batches = [(rows, (rows.sum(1) > 0).float()) for rows in x]
    optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
    loop = EpochLoop(module, optimizer, batches, complete_first=fixed)
    run = loop.run()
    return Job({"model": module, "optimizer": optimizer, "batch_progress": loop.progress}, step=lambda: next(run))


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
