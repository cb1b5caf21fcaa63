"""The checkpoint is made for inference: it holds the averaged weights only, and the resumed run starts both
the model and its average from them."""

import copy

import torch
from torch import nn

from resume_audit import Job

REPORT = "Megvii-BaseDetection/YOLOX#1318"
STEPS = 10
INTERRUPT = [5]
LOST = ["model", "raw"]


class ModelEma:
    def __init__(self, model, decay=0.95):
        self.module = copy.deepcopy(model).requires_grad_(False)
        self.decay, self.updates = decay, 0

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        decay = min(self.decay, self.updates / (self.updates + 4))
        source = model.state_dict()
        for name, average in self.module.state_dict().items():
            if average.is_floating_point():
                average.lerp_(source[name], 1 - decay)
            else:
                average.copy_(source[name])

    def state_dict(self):
        return {"module": self.module.state_dict(), "updates": self.updates}

    def load_state_dict(self, saved):
        self.module.load_state_dict(saved["module"])
        self.updates = saved["updates"]


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.SiLU())
        self.boxes = nn.Linear(12, 4)

    def forward(self, x):
        return self.boxes(self.backbone(x))


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    images = torch.randn(30, 6)
    model = Detector()
    ema = ModelEma(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    trained = 0

    def step():
        nonlocal trained
        x = images[torch.arange(10).add(10 * trained) % len(images)]
        loss = nn.functional.smooth_l1_loss(model(x), x[:, :4] * x[:, 2:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)
        trained += 1
        return {"loss": loss.item()}

    def save(path):
        checkpoint = {"model": ema.module.state_dict(), "optimizer": optimizer.state_dict()}
        checkpoint |= {"start": trained, "ema_updates": ema.updates}
        if fixed:
            checkpoint["raw"] = model.state_dict()
        torch.save(checkpoint, path)

    def load(path):
        nonlocal trained
        checkpoint = torch.load(path)
        model.load_state_dict(checkpoint["raw"] if fixed else checkpoint["model"])
        ema.load_state_dict({"module": checkpoint["model"], "updates": checkpoint["ema_updates"]})
        optimizer.load_state_dict(checkpoint["optimizer"])
        trained = checkpoint["start"]

    return Job({"model": model, "ema": ema, "optimizer": optimizer}, step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
