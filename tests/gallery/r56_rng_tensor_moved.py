"""Loading moves every tensor of the checkpoint to the compute device and dtype, the generator state among
them. Such a tensor is refused by `set_rng_state`; the resume code reports it as a warning and keeps the fresh
generator."""

import logging

import torch
from torch import nn

from resume_audit import Job

REPORT = "pytorch/ignite#2076"
STEPS = 10
INTERRUPT = [4]
LOST = ["rng"]
log = logging.getLogger("resume")


def to_compute(value, skip=()):
    """Return the same nest of containers with its tensors in the compute type."""
    if torch.is_tensor(value):
        return value.to(device="cpu", dtype=torch.get_default_dtype())
    if isinstance(value, dict):
        return {key: item if key in skip else to_compute(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_compute(item) for item in value]
    return value


class DeterministicEngine:
    """Runs `update` on batch after batch and can write down where it stands."""

    def __init__(self, update, batches, raw_keys):
        self.update, self.batches, self.raw_keys = update, batches, raw_keys
        self.iteration = 0
        self.objects = {}

    def run_one(self):
        metrics = self.update(self.batches[self.iteration % len(self.batches)])
        self.iteration += 1
        return metrics

    def save(self, path):
        states = {name: item.state_dict() for name, item in self.objects.items() if name != "rng"}
        torch.save({"iteration": self.iteration, "rng_state": torch.get_rng_state(), "objects": states}, path)

    def load(self, path):
        saved = to_compute(torch.load(path), skip=self.raw_keys)
        self.iteration = saved["iteration"]
        for name, state in saved["objects"].items():
            self.objects[name].load_state_dict(state)
        try:
            torch.set_rng_state(saved["rng_state"])
        except (TypeError, RuntimeError) as refused:
            log.info("generator state not restored: %s", refused)


class GlobalRng:
    def state_dict(self):
        return {"state": torch.get_rng_state()}

    def load_state_dict(self, saved):
        torch.set_rng_state(saved["state"])


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    batches = torch.randn(7, 8, 6)

    def update(x):
        mixed = x + 0.2 * torch.randn_like(x)
        loss = nn.functional.cross_entropy(model(mixed), x[:, :3].argmin(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    engine = DeterministicEngine(update, batches, raw_keys=("rng_state",) if fixed else ())
    engine.objects |= {"model": model, "optimizer": optimizer, "rng": GlobalRng()}
    return Job(engine.objects, engine.run_one, engine.save, engine.load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
