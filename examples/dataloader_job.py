"""torch's own DataLoader, shuffling, gradient accumulation, an average of weights and early stopping, resumed exactly.

    resume-audit examples/dataloader_job.py --every --matrix

How each of them is resumed, from any micro-step:

* The loader shuffles with a generator of its own. Its state is the generator's at the *start* of the running epoch
  and the number of batches taken since: a resume draws the same order again and steps over the batches taken.
* Gradients of an open accumulation window are a component, so a checkpoint may be taken inside it.
* The average is saved with the number of updates in it, beside the raw weights.
* Early stopping saves its best score and the number of epochs since.
* The process generators, which drive the dropout, come last: stepping over batches must not move them.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset

from resume_audit import Attributes, Gradients, Job, Rng

STEPS = 56  # micro-steps, seven in an epoch; early stopping ends most trainings before
ACCUMULATE = 3  # micro-steps in an update
BATCH_SIZE = 8


class ResumableLoader:
    """A DataLoader's batches, epoch after epoch, that can say where it is and go there again."""

    def __init__(self, loader: DataLoader[tuple[Tensor, ...]], generator: torch.Generator) -> None:
        self.loader, self.generator = loader, generator
        self.epoch = 0
        self.begin()

    def begin(self) -> None:
        """Begin an epoch: its order is drawn from the generator as it is now."""
        self.epoch_start, self.taken = self.generator.get_state(), 0
        self.batches: Iterator[list[Tensor]] = iter(self.loader)

    @property
    def exhausted(self) -> bool:
        """Whether the epoch has no batch left."""
        return self.taken == len(self.loader)

    def take(self) -> list[Tensor]:
        """Return the next batch, of the next epoch where this one is over."""
        if self.exhausted:
            self.epoch += 1
            self.begin()
        self.taken += 1
        return next(self.batches)

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch, its beginning and how far it has come."""
        return {"epoch": self.epoch, "epoch_start": self.epoch_start, "taken": self.taken}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Draw the saved epoch's order again and step over what was taken."""
        self.epoch = saved["epoch"]
        self.generator.set_state(saved["epoch_start"])
        self.begin()
        for _ in range(saved["taken"]):
            self.take()


class EarlyStopping:
    """Ends a training after some epochs without a better score."""

    def __init__(self, patience: int) -> None:
        self.patience, self.best, self.since_best = patience, math.inf, 0

    @property
    def triggered(self) -> bool:
        """Whether the training is over."""
        return self.since_best >= self.patience

    def see(self, score: float) -> None:
        """Take the score of an epoch; lower is better."""
        self.since_best = 0 if score < self.best else self.since_best + 1
        self.best = min(score, self.best)


class Training:
    """All that the job trains with."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        x = torch.randn(72, 6)
        y = x[:, :2].sum(1, keepdim=True).sin() + 0.3 * torch.randn(72, 1)
        self.held_out = x[56:], y[56:]
        self.model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1))
        decay = get_ema_multi_avg_fn(0.5)  # type: ignore[no-untyped-call]  # untyped in torch
        self.average = AveragedModel(self.model, multi_avg_fn=decay)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.1)
        shuffle = torch.Generator().manual_seed(seed)
        dataset = TensorDataset(x[:56], y[:56])
        self.loader = ResumableLoader(DataLoader(dataset, BATCH_SIZE, shuffle=True, generator=shuffle), shuffle)
        self.stopping = EarlyStopping(patience=2)
        self.microsteps = 0

    def step(self) -> dict[str, float]:
        """Take one batch: gradients always, an update every third time, a score at the end of an epoch."""
        if self.stopping.triggered:
            return {"stopped": 1.0}
        inputs, targets = self.loader.take()
        loss = functional.mse_loss(self.model(inputs), targets)
        (loss / ACCUMULATE).backward()  # type: ignore[no-untyped-call]  # untyped in torch
        self.microsteps += 1
        if self.microsteps % ACCUMULATE == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.average.update_parameters(self.model)
        metrics = {"loss": loss.item()}
        if self.loader.exhausted:
            metrics["score"] = self.score()
            self.stopping.see(metrics["score"])
        return metrics

    @torch.no_grad()
    def score(self) -> float:
        """Return the averaged model's loss on the data held out."""
        self.average.eval()
        inputs, targets = self.held_out
        return functional.mse_loss(self.average(inputs), targets).item()


def make_job(seed: int) -> Job:
    """Build the job; what restores state by drawing comes before the generators."""
    training = Training(seed)
    components = {
        "model": training.model,
        "optimizer": training.optimizer,
        "average": training.average,
        "loader": training.loader,
        "early_stopping": Attributes(training.stopping, "best", "since_best"),
        "progress": Attributes(training, "microsteps"),
        "gradients": Gradients(training.model),
        "rng": Rng(),
    }
    return Job(components, training.step)
