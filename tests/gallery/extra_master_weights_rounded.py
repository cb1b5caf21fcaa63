"""The optimizer works on master weights in float32, the model has copies in bfloat16; only the model is saved, and
the resumed run makes its masters of the rounded copies."""

import torch
from torch import nn

from resume_audit import Job, Rng

STEPS = 10
INTERRUPT = [4]
LOST = ["trainer.master"]


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4)).bfloat16()
        self.pairs = [(p, p.detach().float().requires_grad_()) for p in self.model.parameters()]
        self.master = [weight for _, weight in self.pairs]
        self.optimizer = torch.optim.Adam(self.master, lr=0.01)

    def step(self):
        x = torch.randn(8, 4).bfloat16()
        loss = (self.model(x).float() - x.float()).square().mean()
        self.model.zero_grad()
        loss.backward()
        for low, high in self.pairs:
            high.grad = low.grad.float()
        self.optimizer.step()
        with torch.no_grad():
            for low, high in self.pairs:
                low.copy_(high)
        return {"loss": loss.item()}


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    trainer = Trainer()

    def save(path):
        states = [trainer.model.state_dict(), trainer.optimizer.state_dict(), torch.get_rng_state()]
        torch.save([*states, [weight.detach() for weight in trainer.master]], path)

    def load(path):
        weights, moments, draws, master = torch.load(path)
        trainer.model.load_state_dict(weights)
        trainer.optimizer.load_state_dict(moments)
        torch.set_rng_state(draws)
        with torch.no_grad():
            for (low, high), saved in zip(trainer.pairs, master, strict=True):
                high.copy_(saved if fixed else low)

    parts = {"model": trainer.model, "optimizer": trainer.optimizer, "rng": Rng("torch")}
    return Job(parts, trainer.step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
