"""Adapters join model and optimizer when their task first turns up; the resumed run adds them in the order of
their file names, and the optimizer, which matches by position, gives each one the moments of the other."""

import torch
from torch import nn

from resume_audit import Job

REPORT = "pytorch/pytorch#1489"
STEPS = 12
INTERRUPT = [7]
LOST = ["optimizer", "exp_avg", "adapter", "param_groups"]


class MultiTask(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.trunk = nn.Linear(width, width)
        self.adapters = nn.ModuleDict()
        self.head = nn.Linear(width, 1)

    def forward(self, x, task):
        h = torch.tanh(self.trunk(x))
        return self.head(h + self.adapters[task](h))


class Trainer:
    def __init__(self, seed):
        self.seed, self.steps = seed, 0
        self.model = MultiTask()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.03)

    def ensure_adapter(self, task):
        if task not in self.model.adapters:
            adapter = nn.Linear(6, 6, bias=False)
            nn.init.zeros_(adapter.weight)
            self.model.adapters[task] = adapter
            self.optimizer.add_param_group({"params": [adapter.weight]})

    def step(self):
        task = "summary" if self.steps < 3 or self.steps % 2 else "answer"
        self.ensure_adapter(task)
        generator = torch.Generator().manual_seed(self.seed * 1000 + self.steps)
        x = torch.randn(8, 6, generator=generator)
        y = x.sum(1, keepdim=True) if task == "summary" else x.amax(1, keepdim=True)
        loss = nn.functional.mse_loss(self.model(x, task), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        return {"loss": loss.item()}


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    trainer = Trainer(seed)
    model, optimizer = trainer.model, trainer.optimizer

    def save(path):
        path.mkdir(parents=True, exist_ok=True)
        for task, adapter in model.adapters.items():
            torch.save(adapter.state_dict(), path / f"adapter_{task}.pt")
        base = {name: value for name, value in model.state_dict().items() if not name.startswith("adapters.")}
        state = {"base": base, "optimizer": optimizer.state_dict(), "steps": trainer.steps}
        torch.save(state | {"tasks": list(model.adapters)}, path / "trainer.pt")

    def load(path):
        state = torch.load(path / "trainer.pt")
        found = [file.stem.removeprefix("adapter_") for file in sorted(path.glob("adapter_*.pt"))]
        for task in state["tasks"] if fixed else found:
            trainer.ensure_adapter(task)
            model.adapters[task].load_state_dict(torch.load(path / f"adapter_{task}.pt"))
        model.load_state_dict(state["base"], strict=False)
        optimizer.load_state_dict(state["optimizer"])
        trainer.steps = state["steps"]

    return Job({"model": model, "optimizer": optimizer}, trainer.step, save, load)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
