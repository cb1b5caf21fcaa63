"""A plain training script, and the dozen lines at its end that make a job of it.

python examples/plain_script_job.py plain.pt     # trains, and goes on from plain.pt where there is one
resume-audit examples/plain_script_job.py        # DIVERGES: its checkpoint lacks something
resume-audit examples/plain_script_job.py --factory make_fixed
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from resume_audit import Attributes, Job

STEPS = 12


@dataclass
class Training:
    """What the script trains."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler
    data: Tensor
    step: int = 0


def build(seed: int) -> Training:
    """Set everything up."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.3)
    return Training(model, optimizer, scheduler, torch.randn(64, 8))


def train_step(training: Training) -> float:
    """Update once and return the loss."""
    x = training.data.roll(-8 * training.step, dims=0)[:8]
    loss = functional.mse_loss(training.model(x), x.square().sum(1, keepdim=True))
    training.optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]  # untyped in torch
    training.optimizer.step()
    training.scheduler.step()
    training.step += 1
    return loss.item()


def save_checkpoint(training: Training, path: Path) -> None:
    """Write what a resume needs, or so the author thought."""
    state = {"model": training.model.state_dict(), "optimizer": training.optimizer.state_dict()}
    torch.save(state | {"step": training.step}, path)


def load_checkpoint(training: Training, path: Path) -> None:
    """Read what `save_checkpoint` wrote."""
    saved = torch.load(path)
    training.model.load_state_dict(saved["model"])
    training.optimizer.load_state_dict(saved["optimizer"])
    training.step = saved["step"]


def main() -> None:
    """Train to the end, from a checkpoint where there is one."""
    path = Path(sys.argv[1])
    training = build(seed=0)
    if path.exists():
        load_checkpoint(training, path)
    while training.step < STEPS:
        print(f"step {training.step + 1}: loss {train_step(training):.4f}")
        save_checkpoint(training, path)


if __name__ == "__main__":
    main()


# --- what makes a job of it ---------------------------------------------------------------------------------


def make_job(seed: int) -> Job:
    """Give the script's own step, save and load to the audit."""
    training = build(seed)
    return Job(
        components={
            "model": training.model,
            "optimizer": training.optimizer,
            "scheduler": training.scheduler,
            "progress": Attributes(training, "step"),
        },
        step=lambda: {"loss": train_step(training)},
        save=partial(save_checkpoint, training),
        load=partial(load_checkpoint, training),
    )


def make_fixed(seed: int) -> Job:
    """Leave saving and loading to the components: all of them, the scheduler too."""
    job = make_job(seed)
    return Job(job.components, job.step)
