"""The loader's count of yielded batches is set back to zero when an iteration starts; the restored value
lives on only as a local, so a second resume in the same epoch skips too few batches."""

import torch
from torch import nn

from resume_audit import Job

REPORT = "KempnerInstitute/KempnerForge#57"
STEPS = 14
INTERRUPT = [4, 7]
CHAIN = True
LOST = ["yielded", "loader", "cursor"]


class ResumableLoader:
    """Shuffled batches, epoch after epoch; `yielded` is the position in the running epoch."""

    def __init__(self, tokens, batch_size, seed, keep_count):
        self.tokens, self.batch_size, self.seed, self.keep_count = tokens, batch_size, seed, keep_count
        self.epoch, self.yielded = 0, 0

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed * 97 + self.epoch)
        batches = torch.randperm(len(self.tokens), generator=generator).split(self.batch_size)
        skip = self.yielded
        if not self.keep_count:
            self.yielded = 0
        for rows in batches[skip:]:
            self.yielded += 1
            yield self.tokens[rows]
        self.epoch, self.yielded = self.epoch + 1, 0

    def state_dict(self):
        return {"epoch": self.epoch, "yielded": self.yielded}

    def load_state_dict(self, saved):
        self.epoch, self.yielded = saved["epoch"], saved["yielded"]


class NextToken(nn.Module):
    def __init__(self, vocabulary=11, width=8):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        logits = self.out(self.embed(tokens[:, :-1]).cumsum(1))
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def pretrain(model, optimizer, loader):
    while True:
        for tokens in loader:
            loss = model(tokens)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield {"loss": loss.item(), "tokens": float(tokens.sum())}


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = NextToken()
    tokens = torch.randint(11, (40, 6))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    loader = ResumableLoader(tokens, batch_size=4, seed=seed, keep_count=fixed)
    loop = pretrain(model, optimizer, loader)
    return Job({"model": model, "optimizer": optimizer, "loader": loader}, step=lambda: next(loop))


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
