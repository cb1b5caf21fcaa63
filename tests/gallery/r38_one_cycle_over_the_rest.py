"""On resume the OneCycleLR is configured again, over the steps that are left, and its saved state is not
applied: the rest of the run is a whole new cycle, warm-up included."""

import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR

from resume_audit import Job

REPORT = "Lightning-AI/pytorch-lightning#15462"
STEPS = 12
INTERRUPT = [5]
LOST = ["scheduler", "lr", "total_steps", "momentum", "betas"]


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(5, 12)
        self.norm = nn.LayerNorm(12)
        self.out = nn.Linear(12, 2)

    def forward(self, x):
        return self.out(self.norm(torch.relu(self.features(x))))


class Trainer:
    def __init__(self, model, seed, max_steps, restore_schedule):
        self.model, self.seed, self.max_steps, self.restore_schedule = (
            model,
            seed,
            max_steps,
            restore_schedule,
        )
        self.global_step = 0
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.components = {
            "model": model,
            "optimizer": self.optimizer,
            "scheduler": self.configure_scheduler(),
        }

    def configure_scheduler(self):
        estimated_steps = self.max_steps - self.global_step
        return OneCycleLR(self.optimizer, max_lr=0.05, total_steps=estimated_steps + 1)

    def training_step(self):
        generator = torch.Generator().manual_seed(self.seed * 331 + self.global_step)
        x = torch.rand(10, 5, generator=generator)
        loss = nn.functional.cross_entropy(self.model(x), (x.sum(1) > 2.5).long())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        lr = self.optimizer.param_groups[0]["lr"]
        self.components["scheduler"].step()
        self.global_step += 1
        return {"loss": loss.item(), "lr": lr}

    def save_checkpoint(self, path):
        states = {name: component.state_dict() for name, component in self.components.items()}
        torch.save({"global_step": self.global_step, "states": states}, path)

    def resume(self, path):
        checkpoint = torch.load(path)
        states = checkpoint["states"]
        self.model.load_state_dict(states["model"])
        if self.restore_schedule:
            self.components["scheduler"].load_state_dict(states["scheduler"])
        self.optimizer.load_state_dict(states["optimizer"])
        self.global_step = checkpoint["global_step"]
        if not self.restore_schedule:
            self.components["scheduler"] = self.configure_scheduler()


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    trainer = Trainer(Classifier(), seed, max_steps=STEPS, restore_schedule=fixed)
    return Job(trainer.components, trainer.training_step, trainer.save_checkpoint, trainer.resume)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
