"""Every rank draws from its own stream, but the checkpoint holds the stream of rank 0 only, as though it were
the same everywhere; after the resume all ranks draw the same numbers. The ranks are simulated one after the
other."""

import torch
from torch import nn

from resume_audit import Job

REPORT = "NVIDIA/Megatron-LM#6858"
STEPS = 10
INTERRUPT = [4]
LOST = ["rng", "rank", "stream"]
WORLD = 3


class RngTracker:
    """One generator per data-parallel rank."""

    def __init__(self, seed, sharded):
        self.sharded = sharded
        self.streams = [torch.Generator().manual_seed(10_000 * (rank + 1) + seed) for rank in range(WORLD)]

    def fork(self, rank):
        return self.streams[rank]

    def state_dict(self):
        if self.sharded:
            return {f"rank{rank}": stream.get_state() for rank, stream in enumerate(self.streams)}
        return {"replicated": self.streams[0].get_state()}

    def load_state_dict(self, saved):
        for rank, stream in enumerate(self.streams):
            stream.set_state(saved[f"rank{rank}" if self.sharded else "replicated"])


class Iteration:
    def __init__(self):
        self.count = 0

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, saved):
        self.count = saved["count"]


class NoisyMlp(nn.Module):
    def __init__(self, rate=0.3):
        super().__init__()
        self.up, self.down, self.rate = nn.Linear(5, 16), nn.Linear(16, 5), rate

    def forward(self, x, generator):
        h = torch.relu(self.up(x))
        keep = torch.rand(h.shape, generator=generator) >= self.rate
        return self.down(h * keep / (1 - self.rate))


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = NoisyMlp()
    data = torch.randn(WORLD * 24, 5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    tracker, iteration = RngTracker(seed, sharded=fixed), Iteration()

    def step():
        optimizer.zero_grad()
        losses = []
        for rank in range(WORLD):
            shard = data[rank::WORLD]
            x = shard[torch.arange(6).add(6 * iteration.count) % len(shard)]
            loss = nn.functional.mse_loss(model(x, tracker.fork(rank)), x.roll(1, dims=1))
            (loss / WORLD).backward()  # the sum stands for the all-reduce
            losses.append(loss.item())
        optimizer.step()
        iteration.count += 1
        return {f"loss{rank}": loss for rank, loss in enumerate(losses)}

    return Job({"model": model, "optimizer": optimizer, "iteration": iteration, "rng": tracker}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
