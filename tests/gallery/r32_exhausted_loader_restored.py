"""A checkpoint at an epoch's end holds a loader that has handed out everything. The trainer starts the next
epoch with it, gets no batch, falls out of its loop and ends without an update and without an error."""

import torch
from torch import nn

from resume_audit import Job

REPORT = "verl-project/verl#7401"
STEPS = 12
INTERRUPT = [6]  # end of the first of two epochs
LOST = ["loader", "handed_out", "resume_at", "exhausted"]
EPOCHS = 2


class StatefulLoader:
    """Takes up the restored position in the first iteration after the load."""

    def __init__(self, rows, batch_size, seed, wrap):
        self.rows, self.batch_size, self.seed, self.wrap = rows, batch_size, seed, wrap
        self.epoch, self.handed_out, self.resume_at = 0, 0, None

    def __len__(self):
        return self.rows // self.batch_size

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        batches = torch.randperm(self.rows, generator=generator).split(self.batch_size)
        self.handed_out = self.resume_at or 0
        self.resume_at = None
        for batch in batches[self.handed_out :]:
            self.handed_out += 1
            yield batch

    def state_dict(self):
        at = self.handed_out if self.resume_at is None else self.resume_at
        return {"handed_out": at % len(self) if self.wrap else at}  # a finished pass is no position

    def load_state_dict(self, saved):
        self.resume_at = saved["handed_out"]


class Progress:
    def __init__(self):
        self.global_step = 0

    def state_dict(self):
        return {"global_step": self.global_step}

    def load_state_dict(self, saved):
        self.global_step = saved["global_step"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    prompts = torch.randn(24, 6)
    policy = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 4))
    optimizer = torch.optim.AdamW(policy.parameters(), lr=0.01)
    loader, progress = StatefulLoader(24, 4, seed, wrap=fixed), Progress()

    def fit():
        for epoch in range(progress.global_step // len(loader), EPOCHS):
            loader.set_epoch(epoch)
            for rows in loader:
                loss = nn.functional.cross_entropy(policy(prompts[rows]), prompts[rows, :4].argmax(1))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                progress.global_step += 1
                yield {"loss": loss.item(), "updates": 1.0}

    run = fit()
    components = {"policy": policy, "optimizer": optimizer, "loader": loader, "progress": progress}
    return Job(components, step=lambda: next(run, {"updates": 0.0}))


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
