"""A resumed run first evaluates what it has loaded. The validation loader does not shuffle, but making its
iterator draws a number from the global generator, and all later training noise is one draw further on."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from resume_audit import Job

REPORT = "pytorch/pytorch#36998"
STEPS = 10
INTERRUPT = [4]
LOST = ["rng", "generator"]


class TorchRng:
    def state_dict(self):
        return {"state": torch.get_rng_state()}

    def load_state_dict(self, saved):
        torch.set_rng_state(saved["state"])


class DenoisingTrainer:
    def __init__(self, model, optimizer, clean, held_out, private_generator):
        self.model, self.optimizer, self.clean = model, optimizer, clean
        self.validation = DataLoader(
            TensorDataset(held_out), batch_size=8, generator=torch.Generator() if private_generator else None
        )
        self.trained = 0
        self.score_at_start = None

    def state_dict(self):
        return {"trained": self.trained}

    def load_state_dict(self, saved):
        self.trained = saved["trained"]

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        total = sum(nn.functional.mse_loss(self.model(x), x, reduction="sum") for (x,) in self.validation)
        self.model.train()
        return total.item()

    def fit(self):
        if self.trained:
            self.score_at_start = self.evaluate()  # for the log: does it match the score at the save?
        while True:
            x = self.clean[torch.arange(6).add(6 * self.trained) % len(self.clean)]
            noisy = x + 0.5 * torch.randn_like(x)
            loss = nn.functional.mse_loss(self.model(noisy), x)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.trained += 1
            yield {"loss": loss.item()}


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(7, 14), nn.ReLU(), nn.Dropout(0.1), nn.Linear(14, 7))
    clean = torch.randn(40, 7).cumsum(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    trainer = DenoisingTrainer(model, optimizer, clean[:30], clean[30:], private_generator=fixed)
    run = trainer.fit()
    components = {"model": model, "optimizer": optimizer, "trainer": trainer, "rng": TorchRng()}
    return Job(components, step=lambda: next(run))


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
