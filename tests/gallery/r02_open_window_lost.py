"""Stop inside an accumulation window: its gradients and its summed loss, a local of `train`, are in no
checkpoint."""

import torch
from torch import nn

from resume_audit import Job

REPORT = "Nerogar/OneTrainer#1465"
STEPS = 16  # micro-steps
INTERRUPT = [6]  # two micro-steps into the second window
LOST = ["grad", "accumulated_loss", "window"]
WINDOW = 4


class Progress:
    def __init__(self):
        self.global_step = 0

    def state_dict(self):
        return {"global_step": self.global_step}

    def load_state_dict(self, saved):
        self.global_step = saved["global_step"]


class OpenWindow:
    """What a window that is not yet applied holds."""

    def __init__(self, model):
        self.model = model
        self.accumulated_loss = 0.0

    def state_dict(self):
        grads = {name: p.grad.clone() for name, p in self.model.named_parameters() if p.grad is not None}
        return {"accumulated_loss": self.accumulated_loss, "grad": grads}

    def load_state_dict(self, saved):
        self.accumulated_loss = saved["accumulated_loss"]
        for name, p in self.model.named_parameters():
            p.grad = saved["grad"][name].clone() if name in saved["grad"] else None


def train(model, optimizer, progress, inputs, targets, window=None):
    accumulated_loss = window.accumulated_loss if window else 0.0
    while True:
        rows = torch.arange(4) * 7 + 5 * progress.global_step
        x, y = inputs[rows % len(inputs)], targets[rows % len(targets)]
        loss = nn.functional.mse_loss(model(x), y) / WINDOW
        loss.backward()
        accumulated_loss += loss.item()
        progress.global_step += 1
        metrics = {"micro_loss": loss.item()}
        if progress.global_step % WINDOW == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            metrics["train_loss"] = accumulated_loss
            accumulated_loss = 0.0
        if window:
            window.accumulated_loss = accumulated_loss
        yield metrics


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
    inputs = torch.randn(48, 5)
    targets = inputs.sum(1, keepdim=True).sin()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    progress = Progress()
    components = {"model": model, "optimizer": optimizer, "progress": progress}
    if fixed:
        components["window"] = OpenWindow(model)
    loop = train(model, optimizer, progress, inputs, targets, components.get("window"))
    return Job(components, step=lambda: next(loop))


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
