"""A stream reports a position dict that its shards update in place. Loading rebinds the reported dict to a
copy which nobody updates: later checkpoints repeat the loaded position, and a second resume starts over from
there."""

import torch
from torch import nn

from resume_audit import Job

REPORT = "huggingface/datasets#8308"
STEPS = 15
INTERRUPT = [4, 9]
CHAIN = True
LOST = ["stream", "position", "shard", "row"]


class Shards:
    """Examples shard by shard, endlessly; `position` names the next one."""

    def __init__(self, shards):
        self.shards = shards
        self.position = {"shard": 0, "row": 0}

    def seek(self, position):
        self.position.update(position)

    def __next__(self):
        shard = self.shards[self.position["shard"]]
        example = shard[self.position["row"]]
        self.position["row"] += 1
        if self.position["row"] == len(shard):
            self.position.update(shard=(self.position["shard"] + 1) % len(self.shards), row=0)
        return example


class Stream:
    """Maps and batches the examples of the shards."""

    def __init__(self, source, batch_size, rebind):
        self.source, self.batch_size, self.rebind = source, batch_size, rebind
        self._state = source.position

    def __next__(self):
        return torch.stack([next(self.source) for _ in range(self.batch_size)])

    def state_dict(self):
        return dict(self._state)

    def load_state_dict(self, saved):
        if self.rebind:
            self._state = dict(saved)
        self.source.seek(saved)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(8, 3), nn.Linear(3, 8)

    def forward(self, x):
        return self.decode(torch.tanh(self.encode(x)))


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = Autoencoder()
    shards = [torch.randn(rows, 8) for rows in (14, 9, 21)]
    stream = Stream(Shards(shards), batch_size=3, rebind=not fixed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)

    def step():
        batch = next(stream)
        loss = nn.functional.mse_loss(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item(), "batch": batch.sum().item()}

    return Job({"model": model, "optimizer": optimizer, "stream": stream}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
