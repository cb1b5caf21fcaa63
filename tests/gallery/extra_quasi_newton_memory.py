"""LBFGS keeps pairs of earlier steps in its state; the job writes only what is a tensor, to save room."""

import torch
from torch import nn

from resume_audit import Job

STEPS = 8
INTERRUPT = [4]
LOST = ["optimizer", "old_dirs", "old_stps"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=2, history_size=5)
    x = torch.randn(12, 4)

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.prod(1, keepdim=True).tanh())
        loss.backward()
        return loss

    def save(path):
        state = optimizer.state_dict()
        if not fixed:
            kept = {n: {k: v for k, v in s.items() if torch.is_tensor(v)} for n, s in state["state"].items()}
            state = {**state, "state": kept}
        torch.save({"model": model.state_dict(), "optimizer": state}, path)

    def load(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        state = saved["optimizer"]["state"].get(0, {})
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        optimizer.load_state_dict(saved["optimizer"])

    return Job({"model": model, "optimizer": optimizer}, lambda: {"loss": optimizer.step(closure).item()}, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
