"""The file of generator states holds NumPy's legacy tuple, which `torch.load` refuses by default; the resume
code takes the refusal for an old file, logs a line and trains on with freshly seeded generators."""

import logging
import pickle

import numpy as np
import torch
from torch import nn

from resume_audit import Job

REPORT = "huggingface/transformers#40500"
STEPS = 10
INTERRUPT = [4]
LOST = ["rng", "numpy"]
log = logging.getLogger(__name__)


class RngStates:
    """NumPy picks the masked positions, torch drives the dropout."""

    def __init__(self, plain):
        self.plain = plain

    def state_dict(self):
        name, keys, position, has_gauss, cached = np.random.get_state()
        if self.plain:
            numpy_state = (name, keys.tolist(), position, has_gauss, cached)
        else:
            numpy_state = (name, keys, position, has_gauss, cached)
        return {"numpy": numpy_state, "torch": torch.get_rng_state()}

    def load_state_dict(self, saved):
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.asarray(keys, dtype=np.uint32), *rest))
        torch.set_rng_state(saved["torch"])


class Denoiser(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, width))

    def forward(self, x):
        return self.net(x)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    np.random.seed(seed)
    data = torch.randn(40, 10).cumsum(1)
    model = Denoiser(10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    components = {"model": model, "optimizer": optimizer, "rng": RngStates(plain=fixed)}

    def step():
        rows = np.random.choice(len(data), 8, replace=False)
        clean = data[torch.from_numpy(rows)]
        mask = torch.from_numpy(np.random.rand(*clean.shape) < 0.3)
        loss = (model(clean.masked_fill(mask, 0.0)) - clean)[mask].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item(), "masked": float(mask.sum())}

    def save(path):
        path.mkdir(parents=True, exist_ok=True)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path / "trainer.pt")
        torch.save(components["rng"].state_dict(), path / "rng_state.pth")

    def load(path):
        saved = torch.load(path / "trainer.pt")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        try:
            components["rng"].load_state_dict(torch.load(path / "rng_state.pth"))
        except pickle.UnpicklingError:
            log.info("unreadable generator states in %s, left as seeded", path)

    return Job(components, step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
