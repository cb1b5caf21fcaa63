"""What sort of state a lost piece is, and what to do about it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from resume_audit.graph.difference import Suspect


class Advice(NamedTuple):
    """One kind of state: the words by which a path betrays it, and what a job's author does about it."""

    title: str
    words: str  # separated by spaces
    remedy: str


KINDS: Final = {
    # Where a path has words of several kinds, the first of them decides: `ema.step` is part of an average.
    "loss_scaler": Advice(
        "loss scaler",
        "scaler loss_scale growth_tracker found_inf",
        "Save the scaler's state_dict() (the scale and how many good steps it has counted) and load it "
        "after anything that steps through it, such as a dummy step that makes an optimizer's state.",
    ),
    "ema": Advice(
        "average of weights",
        "ema swa n_averaged averaged shadow teacher target slow",
        "Save the averaged weights and the number of updates that went into them, beside the raw "
        "weights and not in their place; a decay that warms up depends on that number.",
    ),
    "scheduler": Advice(
        "schedule",
        "scheduler schedule lr last_epoch _step_count warmup milestones initial_lr base_lrs gamma annealing "
        "curriculum temperature",
        "Save the scheduler's own state after its step for this update is taken, and load it into a "
        "scheduler that was built before anything was loaded: building one writes a learning rate into "
        "the optimizer. Where it must be built later, load the optimizer after it.",
    ),
    "early_stopping": Advice(
        "early stopping",
        "patience early_stop stopper bad_epochs bad_evals since_best best plateau",
        "Save the best score and the number of evaluations since it together: whoever restores neither "
        "grants the full patience again, whoever restores one of them judges the next score by the "
        "wrong measure.",
    ),
    "gradients": Advice(
        "gradients",
        "grad grads gradients",
        "Save only where no gradients are held, after the optimizer's step and zero_grad(), or save "
        'them too: "grads": Gradients(model). No gradient and a gradient of zeros are different states.',
    ),
    "generator": Advice(
        "random number generator",
        "rng rngs generator generators random randomness random_state bit_generator mt19937",
        "Save the generator's state and put it back last, after everything that may draw from it while "
        'objects are built and loaded: "rng": Rng() for the generators of the process, Generator(g) for '
        "one of your own.",
    ),
    "data_order": Advice(
        "order of the data",
        "loader dataloader sampler dataset stream batches order permutation shuffle cursor position "
        "iterator shard shards buffer replay deque worker workers",
        "Save the epoch, the position in it and the generator's state from which its order was drawn; "
        "on resuming, draw that same order again and step over what was seen without drawing anything "
        "else. A loader with a state_dict() of its own is a component like any other.",
    ),
    "optimizer": Advice(
        "optimizer state",
        "optimizer exp_avg exp_avg_sq momentum_buffer param_groups optim",
        "Save the optimizer's state_dict() and load it once the model has all its parameters: entries "
        "are matched by position, so parameters and groups must have been added in the same order. "
        "Loading casts entries to the parameter's type; what must keep another type has to be put back "
        "by hand.",
    ),
    "cache": Advice(
        "cache",
        "cache cached memo memory lookup lru",
        "A value remembered from earlier is state as soon as what it was computed from has moved on: "
        "save it, or compute it anew at steps that do not depend on where a run was interrupted.",
    ),
    "aliasing": Advice(
        "shared storage",
        "alias tied",
        "state_dict() hands out the live tensors: keep a copy where a copy is meant. After loading, tie "
        "again what was tied, before the optimizer is built around it.",
    ),
    "counter": Advice(
        "counter",
        "step steps epoch epochs iteration count counter counts updates calls seen completed trained tick "
        "total index ptr",
        "Put the number into the state_dict() of the object that counts, or make it a component: "
        'Attributes(owner, "name").',
    ),
    "model": Advice(
        "weights and buffers",
        "model module net network weight bias running_mean running_var requires_grad training weight_u "
        "weight_v num_batches_tracked queue hidden",
        "Save the whole state_dict() of the module and load it strictly. Buffers registered with "
        "persistent=False and flags such as requires_grad and training are in no state_dict(): save "
        "them yourself.",
    ),
    "variable": Advice(
        "variable",
        "",
        "Move it out of the function, closure or module into an object with a state_dict(), or make it "
        'a component: Attributes(owner, "name"). The local variables of a suspended function cannot be '
        "restored from outside.",
    ),
    "other": Advice(
        "other state",
        "",
        "Put it into the state_dict() of the object that owns it, or make it a component of its own: "
        'Attributes(owner, "name").',
    ),
}

WORDS: Final = {word: kind for kind, advice in reversed(KINDS.items()) for word in advice.words.split()}


def classify(path: str, *, default: str = "other") -> str:
    """Name the kind of state that a path betrays by its words.

    A name that is no such word itself is taken apart: `train_loader` and `trainLoader` hold `loader`.

    Args:
        path: A path as a report has it.
        default: The kind of a path that says nothing; `variable` suits locals, cells and globals.

    Returns:
        A key of `KINDS`: `ema` for `ema.updates`, `counter` for `trainer.updates`, `scheduler` for
        `optimizer.param_groups[0].lr`.
    """
    names = re.findall(r"\w+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", path).lower())
    words = {part for name in names for part in ([name] if name in WORDS else name.split("_"))}
    found = {WORDS[word] for word in words if word in WORDS}
    return next((kind for kind in KINDS if kind in found), default)


def kind_of(suspect: Suspect) -> str:
    """One of the kinds of `schemas/audit.schema.json`."""
    if suspect.kind in ("alias", "storage"):
        return "aliasing"
    if suspect.sort == "rng":
        return "generator"
    held = suspect.label is not None and suspect.label.kind in ("local", "contents")
    return classify(suspect.path, default="variable" if held else "other")
