"""No scheduler state is kept: the loop builds its scheduler with `last_epoch`. The restored learning rate is
already that of the coming epoch, yet the constructor takes it for that of the last one and decays it once
more. The cosine schedule of the report guards against this by now; StepLR, when resumed at a milestone, does
not."""

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

from resume_audit import Job

REPORT = "pytorch/pytorch#60265"
STEPS = 10  # epochs
INTERRUPT = [4]  # the epoch at whose end the rate falls
LOST = ["scheduler", "last_epoch", "lr"]


class Epoch:
    def __init__(self):
        self.finished = 0

    def state_dict(self):
        return {"finished": self.finished}

    def load_state_dict(self, saved):
        self.finished = saved["finished"]


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, kernel_size=3, padding=1)
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        return self.out(torch.relu(self.conv(x.unsqueeze(1))).mean(2)).squeeze(1)


def stepwise(optimizer, finished=0):
    return StepLR(optimizer, step_size=4, gamma=0.2, last_epoch=finished - 1)


def run(model, optimizer, epoch, data, scheduler=None):
    x, y = data
    if scheduler is None:
        scheduler = stepwise(optimizer, epoch.finished)
    while True:
        lr, total = optimizer.param_groups[0]["lr"], 0.0
        for rows in torch.arange(len(x)).roll(epoch.finished).split(8):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        scheduler.step()
        epoch.finished += 1
        yield {"loss": total / len(x), "lr": lr}


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    model = ConvNet()
    x = torch.randn(16, 9)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    epoch = Epoch()
    components = {"model": model, "optimizer": optimizer, "epoch": epoch}
    if fixed:
        components["scheduler"] = stepwise(optimizer)
    loop = run(model, optimizer, epoch, (x, x.relu().sum(1)), components.get("scheduler"))
    return Job(components, step=lambda: next(loop))


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
