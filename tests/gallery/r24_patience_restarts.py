"""Early stopping counts evaluations without progress in a callback that is not part of the checkpoint: each
resume grants the full patience again, and the run goes on past the point where it should stop."""

import math

import torch
from torch import nn

from resume_audit import Job

REPORT = "huggingface/transformers#28544"
STEPS = 14
INTERRUPT = [5]  # some evaluations without progress, but not yet four
LOST = ["patience", "early_stopping", "stopper", "best", "bad_evals"]


class EarlyStopping:
    def __init__(self, patience, min_delta):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad_evals = math.inf, 0

    @property
    def triggered(self):
        return self.bad_evals >= self.patience

    def evaluated(self, metric):
        if metric < self.best - self.min_delta:
            self.best, self.bad_evals = metric, 0
        else:
            self.bad_evals += 1

    def state_dict(self):
        return {"best": self.best, "bad_evals": self.bad_evals}

    def load_state_dict(self, saved):
        self.best, self.bad_evals = saved["best"], saved["bad_evals"]


class TrainerState:
    def __init__(self):
        self.global_step = 0

    def state_dict(self):
        return {"global_step": self.global_step}

    def load_state_dict(self, saved):
        self.global_step = saved["global_step"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    x = torch.randn(64, 3)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.3 * torch.randn(64, 1)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    state, stopper = TrainerState(), EarlyStopping(patience=4, min_delta=0.2)

    def train_until_next_eval():
        for _ in range(2):
            rows = (torch.arange(8) + 8 * state.global_step) % 48
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            state.global_step += 1
        return loss.item()

    def step():
        if stopper.triggered:
            return {"stopped": 1.0}
        loss = train_until_next_eval()
        with torch.no_grad():
            error = nn.functional.l1_loss(model(x[48:]), y[48:]).item()
        stopper.evaluated(error)
        return {"loss": loss, "eval_error": error, "stopped": 0.0}

    components = {"model": model, "optimizer": optimizer, "state": state}
    if fixed:
        components["early_stopping"] = stopper
    return Job(components, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
