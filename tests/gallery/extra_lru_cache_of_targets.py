"""A teacher's targets are memoised by `functools.lru_cache`; the teacher moves, the remembered targets do
not, and a resumed run asks the teacher anew."""

import functools

import torch
from torch import nn

from resume_audit import Job

STEPS = 12
INTERRUPT = [7]
LOST = ["targets", "cache"]


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    data = torch.randn(5, 8, 4)
    student, teacher = nn.Linear(4, 3), nn.Linear(4, 3)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    count = nn.Module()
    count.register_buffer("steps", torch.tensor(0))

    def targets(number):
        with torch.no_grad():
            return teacher(data[number]).softmax(1)

    if not fixed:
        targets = functools.lru_cache(maxsize=None)(targets)

    def step():
        number = int(count.steps) % 5
        loss = nn.functional.cross_entropy(student(data[number]), targets(number))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mine, theirs in zip(teacher.parameters(), student.parameters(), strict=True):
                mine.lerp_(theirs, 0.2)
        count.steps += 1
        return {"loss": loss.item()}

    return Job({"student": student, "teacher": teacher, "optimizer": optimizer, "count": count}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
