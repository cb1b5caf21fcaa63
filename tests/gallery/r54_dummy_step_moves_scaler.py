"""Before an optimizer is loaded its state is made by a dummy step. The step goes through the wrapper that
also serves the loss scaler, and so the scaler, restored a moment earlier, counts one good step too many."""

import torch
from torch import nn

from resume_audit import Job

REPORT = "huggingface/accelerate#4289"
STEPS = 14
INTERRUPT = [6]
LOST = ["scaler", "scale", "growth_tracker"]


class HalfScaler:
    """Dynamic loss scaling as for float16 gradients: what does not fit into float16 skips the step."""

    def __init__(self, scale, factor, growth_interval):
        self.scale, self.factor, self.growth_interval = scale, factor, growth_interval
        self.growth_tracker = 0

    def step(self, optimizer):
        params = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        halves = [p.grad.half() for p in params]
        self.overflow = not all(half.isfinite().all() for half in halves)
        if not self.overflow:
            for p, half in zip(params, halves, strict=True):
                p.grad = half.float() / self.scale
            optimizer.step()

    def update(self):
        self.growth_tracker += 1
        if self.overflow:
            self.scale, self.growth_tracker = self.scale / self.factor, 0
        elif self.growth_tracker == self.growth_interval:
            self.scale, self.growth_tracker = self.scale * self.factor, 0

    def state_dict(self):
        return {"scale": self.scale, "growth_tracker": self.growth_tracker}

    def load_state_dict(self, saved):
        self.scale, self.growth_tracker = saved["scale"], saved["growth_tracker"]


class PreparedOptimizer:
    """What the training loop steps: the optimizer together with the scaler."""

    def __init__(self, optimizer, scaler, unwrap_for_load):
        self.optimizer, self.scaler, self.unwrap_for_load = optimizer, scaler, unwrap_for_load

    def step(self):
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()

    def state_dict(self):
        return self.optimizer.state_dict()

    def load_state_dict(self, saved):
        for group in self.optimizer.param_groups:
            group["lr"] = 0.0
            for p in group["params"]:
                p.grad = torch.zeros_like(p)
        (self.optimizer if self.unwrap_for_load else self).step()
        self.optimizer.zero_grad()
        self.optimizer.load_state_dict(saved)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
    model.register_buffer("seen", torch.tensor(0))
    scaler = HalfScaler(scale=2.0**9, factor=16.0, growth_interval=4)
    optimizer = PreparedOptimizer(torch.optim.Adam(model.parameters(), lr=0.02), scaler, unwrap_for_load=fixed)

    def step():
        x = torch.randn(8, 5, generator=torch.Generator().manual_seed(seed + 53 * int(model.seen)))
        loss, scale = nn.functional.mse_loss(model(x), 20 * x.sum(1, keepdim=True)), scaler.scale
        (loss * scale).backward()
        optimizer.step()
        model.seen += 1
        return {"loss": loss.item(), "scale": scale, "skipped": float(scaler.overflow)}

    return Job({"model": model, "scaler": scaler, "optimizer": optimizer}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
