"""The configuration says that head and embedding share a weight, so the checkpoint leaves the head out; but
giving storage to a model made on the meta device had untied them, and the resumed head is a copy of the
embedding."""

from dataclasses import dataclass

import torch
from torch import nn

from resume_audit import Job

REPORT = "NVIDIA-NeMo/Automodel#2571"
STEPS = 10
INTERRUPT = [4]
LOST = ["head", "tied"]


@dataclass(frozen=True)
class Config:
    vocabulary: int = 13
    width: int = 6
    tie_word_embeddings: bool = True


class TinyLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.mix = nn.Linear(config.width, config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        if config.tie_word_embeddings:
            self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(torch.tanh(self.mix(self.embed(tokens))))


def materialize(config):
    with torch.device("meta"):
        model = TinyLM(config)
    model.to_empty(device="cpu")  # gives every module a weight of its own
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    return model


class ModelState:
    """The model as the checkpoint sees it: what can be derived is not written."""

    def __init__(self, model, config, by_identity):
        self.model, self.config, self.by_identity = model, config, by_identity

    def head_is_derived(self):
        really = self.model.head.weight is self.model.embed.weight
        return really if self.by_identity else self.config.tie_word_embeddings

    def state_dict(self):
        state = dict(self.model.state_dict())
        if self.head_is_derived():
            del state["head.weight"]
        return state

    def load_state_dict(self, saved):
        if "head.weight" not in saved:
            saved = {**saved, "head.weight": saved["embed.weight"]}
        self.model.load_state_dict(saved)


def make_job(seed: int, fixed: bool = False) -> Job:
    torch.manual_seed(seed)
    config = Config()
    model = materialize(config)
    text = torch.randint(config.vocabulary, (200,))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    cursor = nn.Module()
    cursor.register_buffer("offset", torch.tensor(0))

    def step():
        window = text[int(cursor.offset) :][:17]
        cursor.offset += 16
        loss = nn.functional.cross_entropy(model(window[:-1]), window[1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    state = ModelState(model, config, by_identity=fixed)
    return Job({"model": state, "optimizer": optimizer, "cursor": cursor}, step)


def make_fixed(seed: int) -> Job:
    return make_job(seed, fixed=True)
