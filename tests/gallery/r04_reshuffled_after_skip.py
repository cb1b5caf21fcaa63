"""Mid-epoch resume: the generator is restored where it stood *inside* the epoch, then a new permutation is
drawn from it and the first batches of that wrong permutation are skipped."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from resume_audit import Job

REPORT = "wyim-pgl/transgenic#59"
STEPS = 13
INTERRUPT = [2]
LOST = ["shuffle", "sampler", "permutation", "order", "epoch_start", "loader", "iterator"]


class Position:
    def __init__(self):
        self.epoch, self.batch = 0, 0

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, saved):
        self.epoch, self.batch = saved["epoch"], saved["batch"]


class TorchRng:
    def state_dict(self):
        return {"state": torch.get_rng_state()}

    def load_state_dict(self, saved):
        torch.set_rng_state(saved["state"])


class Shuffle:
    """The generator state from which the permutation of the running epoch was drawn."""

    def __init__(self):
        self.epoch_start = torch.get_rng_state()

    def state_dict(self):
        return {"epoch_start": self.epoch_start}

    def load_state_dict(self, saved):
        self.epoch_start = saved["epoch_start"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    x = torch.randn(20, 6)
    loader = DataLoader(TensorDataset(torch.arange(20), x, x.prod(1, keepdim=True)), batch_size=4, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    at, shuffle = Position(), Shuffle()

    def batches():
        if fixed and at.batch:
            now = torch.get_rng_state()
            torch.set_rng_state(shuffle.epoch_start)
            iterator = iter(loader)
            for _ in range(at.batch):
                next(iterator)
            torch.set_rng_state(now)
            return iterator
        shuffle.epoch_start = torch.get_rng_state()
        iterator = iter(loader)
        for _ in range(at.batch):  # resumed: step over what was seen
            next(iterator)
        return iterator

    def loop():
        while True:
            for ids, inputs, targets in batches():
                loss = nn.functional.mse_loss(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                at.batch += 1
                yield {"loss": loss.item(), "ids": float(ids.sum())}
            at.epoch, at.batch = at.epoch + 1, 0

    components = {"model": model, "optimizer": optimizer, "position": at, "rng": TorchRng()}
    if fixed:
        components["shuffle"] = shuffle
    run = loop()
    return Job(components, step=lambda: next(run))


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
