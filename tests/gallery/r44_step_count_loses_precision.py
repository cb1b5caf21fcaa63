"""An optimizer written for graph capture counts its steps in a float64 tensor. `Optimizer.load_state_dict`
casts the count of a capturable group to float32, and the bias corrections of the resumed run are computed in
less precision."""

import torch
from torch import nn

from resume_audit import Job

REPORT = "pytorch/pytorch#173901"
STEPS = 10
INTERRUPT = [5]
LOST = ["step", "optimizer"]


class GraphAdam(torch.optim.Optimizer):
    """Adam without Python numbers that change from step to step."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-8, keep_step_dtype=False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "capturable": True})
        self.keep_step_dtype = keep_step_dtype

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["step"] = torch.zeros((), dtype=torch.float64)
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                state["step"] += 1
                state["exp_avg"].lerp_(p.grad, 1 - beta1)
                state["exp_avg_sq"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                first, second = 1 - beta1 ** state["step"], 1 - beta2 ** state["step"]
                scale = state["exp_avg_sq"].sqrt() / second.sqrt() + group["eps"]
                p.sub_(state["exp_avg"] / scale * (group["lr"] / first))

    def load_state_dict(self, saved):
        super().load_state_dict(saved)
        if self.keep_step_dtype:
            params = [p for group in self.param_groups for p in group["params"]]
            for number, state in saved["state"].items():
                self.state[params[number]]["step"] = state["step"].clone()


class Batches:
    number = 0

    def __init__(self, seed):
        self.seed = seed

    def __next__(self):
        generator = torch.Generator().manual_seed(self.seed * 613 + self.number)
        self.number += 1
        x = torch.randn(8, 4, generator=generator)
        return x, x.exp().mean(1, keepdim=True)

    def state_dict(self):
        return {"number": self.number}

    def load_state_dict(self, saved):
        self.number = saved["number"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 10), nn.Softplus(), nn.Linear(10, 1))
    optimizer = GraphAdam(model.parameters(), lr=0.02, keep_step_dtype=fixed)
    batches = Batches(seed)

    def step():
        x, y = next(batches)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    return Job({"model": model, "optimizer": optimizer, "batches": batches}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
