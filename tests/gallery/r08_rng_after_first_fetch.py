"""The saved generator state is put back only inside the loop body, when the first batch of the resumed run,
with its random augmentation, has already been loaded; loading the skipped batches moved the generator too."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

from resume_audit import Job

REPORT = "huggingface/transformers#46628"
STEPS = 11
INTERRUPT = [6]
LOST = ["rng", "generator"]
BATCH, PER_EPOCH = 4, 4


class Jittered(Dataset):
    def __init__(self, x):
        self.x = x

    def __getitem__(self, i):
        return self.x[i] + 0.3 * torch.randn(self.x.shape[1]), self.x[i].cos().sum()


class EpochOrder(Sampler):
    def __init__(self, rows, seed):
        self.rows, self.seed, self.epoch, self.skip = rows, seed, 0, 0

    def __iter__(self):
        generator = torch.Generator().manual_seed(1000 * self.seed + self.epoch)
        return iter(torch.randperm(self.rows, generator=generator).tolist()[self.skip :])


class TorchRng:
    """Loaded early, put back late: building the loader and the model may still draw numbers."""

    pending = None

    def state_dict(self):
        return {"state": torch.get_rng_state() if self.pending is None else self.pending}

    def load_state_dict(self, saved):
        self.pending = saved["state"]

    def put_back(self):
        if self.pending is not None:
            torch.set_rng_state(self.pending)
            self.pending = None


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    x = torch.randn(BATCH * PER_EPOCH, 5)
    order = EpochOrder(len(x), seed)
    loader = DataLoader(Jittered(x), BATCH, sampler=order, generator=torch.Generator())
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    rng, counter = TorchRng(), nn.Module()
    counter.register_buffer("step", torch.tensor(0))

    def loop():
        epoch, seen = divmod(int(counter.step), PER_EPOCH)
        while True:
            order.epoch = epoch
            if fixed:  # step over rows without loading them, then continue exactly where the stream stood
                order.skip, seen = seen * BATCH, 0
                rng.put_back()
            for number, (inputs, targets) in enumerate(loader):
                if number < seen:
                    continue
                rng.put_back()
                loss = (model(inputs).squeeze(1) - targets).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                counter.step += 1
                yield {"loss": loss.item(), "input": inputs.sum().item()}
            epoch, seen, order.skip = epoch + 1, 0, 0

    run = loop()
    components = {"model": model, "optimizer": optimizer, "counter": counter, "rng": rng}
    return Job(components, step=lambda: next(run))


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
