"""The housekeeping after a save removes the file of random states with the other small files; loading notes
its absence at INFO level and goes on as if nothing were missing."""

import logging
import pickle
import random

import torch
from torch import nn

from resume_audit import Job

REPORT = "huggingface/accelerate#4308"
STEPS = 10
INTERRUPT = [5]
LOST = ["rng", "random"]
logger = logging.getLogger(__name__)


class RandomStates:
    def state_dict(self):
        return {"python": random.getstate(), "torch": torch.get_rng_state()}

    def load_state_dict(self, saved):
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])


class Accelerated:
    """Saves and loads what was registered, one file each."""

    def __init__(self, keep=(".pt",), strict=False, **objects):
        self.keep, self.strict, self.objects = keep, strict, objects

    def save_state(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("model", "optimizer"):
            torch.save(self.objects[name].state_dict(), folder / f"{name}.pt")
        (folder / "random_states_0.pkl").write_bytes(pickle.dumps(self.objects["rng"].state_dict()))
        (folder / "model_card.txt").write_text("not for release")
        for file in folder.iterdir():  # what the upload does not need
            if file.suffix not in self.keep:
                file.unlink()

    def load_state(self, folder):
        for name in ("model", "optimizer"):
            self.objects[name].load_state_dict(torch.load(folder / f"{name}.pt"))
        try:
            states = pickle.loads((folder / "random_states_0.pkl").read_bytes())
            self.objects["rng"].load_state_dict(states)
        except OSError:
            if self.strict:
                raise
            logger.info("no random states in %s", folder)


def make_job(seed: int, fixed: bool = False) -> Job:
    random.seed(seed)
    torch.manual_seed(seed)
    data = torch.randn(30, 6)
    model = nn.Sequential(nn.Linear(6, 10), nn.Dropout(0.25), nn.ELU(), nn.Linear(10, 1))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.005)
    objects = {"model": model, "optimizer": optimizer, "rng": RandomStates()}
    accelerated = Accelerated((".pt", ".pkl"), True, **objects) if fixed else Accelerated(**objects)

    def step():
        x = data[random.sample(range(len(data)), 6)]
        if random.random() < 0.5:
            x = x.flip(1)
        loss = nn.functional.smooth_l1_loss(model(x), x.square().sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    return Job(objects, step, accelerated.save_state, accelerated.load_state)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
