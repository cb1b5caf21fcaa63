"""Skipping the batches already seen makes a new loader around a new sampler, and nobody tells that sampler
the epoch: the rest of the interrupted epoch comes from the order of epoch 0."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

from resume_audit import Job

REPORT = "modelscope/ms-swift#10050"
STEPS = 14
INTERRUPT = [6]  # second epoch, two batches in
LOST = ["epoch", "sampler", "order", "loader"]


class ShuffledBatches(Sampler):
    def __init__(self, rows, batch_size, seed, skip=0):
        self.rows, self.batch_size, self.seed, self.skip = rows, batch_size, seed, skip
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.rows, generator=generator).split(self.batch_size)
        return iter([rows.tolist() for rows in order[self.skip :]])

    def __len__(self):
        return self.rows // self.batch_size - self.skip


def loader_over(dataset, sampler):
    return DataLoader(dataset, batch_sampler=sampler, generator=torch.Generator())


def skip_first_batches(loader, count, keep_epoch):
    old = loader.batch_sampler
    new = ShuffledBatches(old.rows, old.batch_size, old.seed, skip=count)
    if keep_epoch:
        new.set_epoch(old.epoch)
    return loader_over(loader.dataset, new)


class TrainState:
    global_step = 0

    def state_dict(self):
        return {"global_step": self.global_step}

    def load_state_dict(self, saved):
        self.global_step = saved["global_step"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    x = torch.randn(20, 4)
    loader = loader_over(TensorDataset(torch.arange(20), x, x.abs().sum(1)), ShuffledBatches(20, 5, seed))
    model = nn.Sequential(nn.Linear(4, 9), nn.SiLU(), nn.Linear(9, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    state = TrainState()

    def inner_training_loop():
        epoch, seen = divmod(state.global_step, len(loader))
        while True:
            loader.batch_sampler.set_epoch(epoch)
            for ids, inputs, targets in skip_first_batches(loader, seen, keep_epoch=fixed) if seen else loader:
                loss = nn.functional.l1_loss(model(inputs).squeeze(1), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                state.global_step += 1
                yield {"loss": loss.item(), "ids": float((2.0**ids).sum())}
            epoch, seen = epoch + 1, 0

    loop = inner_training_loop()
    return Job({"model": model, "optimizer": optimizer, "state": state}, step=lambda: next(loop))


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
