"""What sort of state a lost piece is, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from resume_audit.graph.difference import Suspect


class Advice(NamedTuple):
    """One kind of state: how it is recognised, and what a job's author does about it.

    All but title and remedy are words separated by spaces. names: what a piece of state itself is called, in
    libraries mostly; such a name decides. words: what it or one of its holders is called, as a whole or in part.
    hints: the same, where nothing else is known. classes: modules whose classes hold this kind of state.
    """

    title: str
    remedy: str
    names: str = ""
    words: str = ""
    hints: str = ""
    classes: str = ""


KINDS: Final = {
    "loss_scaler": Advice(
        "loss scaler",
        "Save the scaler's state_dict() (the scale and how many good steps it has counted) and load "
        "it after anything that steps through it, such as a dummy step that makes an optimizer's "
        "state.",
        names="_growth_tracker found_inf loss_scale",
        words="scaler",
        classes="torch.amp.grad_scaler torch.cuda.amp",
    ),
    "ema": Advice(
        "running average",
        "Save the average itself and the number of updates that went into it, since a decay that "
        "warms up depends on that number; averaged weights beside the raw weights and not in their "
        "place.",
        names="n_averaged",
        words="ema swa averaged average shadow teacher target slow rms",
        classes="torch.optim.swa_utils",
    ),
    "scheduler": Advice(
        "schedule",
        "Save the scheduler's own state after its step for this update is taken, and load it into a "
        "scheduler that was built before anything was loaded: building one writes a learning rate "
        "into the optimizer. Where it must be built later, load the optimizer after it.",
        names="last_epoch _step_count t_cur t_i base_lrs",
        words="scheduler schedulers schedule sched lr warmup milestones annealing",
        classes="torch.optim.lr_scheduler",
    ),
    "early_stopping": Advice(
        "early stopping",
        "Save the best score and the number of evaluations since it together: whoever restores "
        "neither grants the full patience again, whoever restores one of them judges the next score "
        "by the wrong measure.",
        words="patience stopper stopping early best bad plateau",
    ),
    "gradients": Advice(
        "gradients",
        "Save only where no gradients are held, after the optimizer's step and zero_grad(), or save "
        'them too: "grads": Gradients(model). No gradient and a gradient of zeros are different '
        "states.",
        names="grad grads gradients",
    ),
    "generator": Advice(
        "random number generator",
        "Save the generator's state and put it back last, after everything that may draw from it "
        'while objects are built and loaded: "rng": Rng() for the generators of the process, '
        "Generator(g) for one of your own.",
        names="generator generators random getstate random_state bit_generator mt19937",
        words="rng rngs",
    ),
    "data_order": Advice(
        "order of the data",
        "Save the epoch, the position in it and the generator's state from which its order was drawn; "
        "on resuming, draw that same order again and step over what was seen without drawing anything "
        "else. What was taken from the data and not used yet (a buffer, a batch ahead) has to be "
        "saved itself. A loader with a state_dict() of its own is a component like any other.",
        names="position",
        words=(
            "loader dataloader sampler dataset stream streams batches order permutation shuffle "
            "cursor iterator fetcher prefetcher shard shards replay worker workers"
        ),
        classes="torch.utils.data",
    ),
    "optimizer": Advice(
        "optimizer state",
        "Save the optimizer's state_dict() and load it once the model has all its parameters: entries "
        "are matched by position, so parameters and groups must have been added in the same order. "
        "Loading casts entries to the parameter's type; what must keep another type has to be put "
        "back by hand.",
        names="exp_avg exp_avg_sq momentum_buffer param_groups",
        words="optimizer optimizers optim opt",
        classes="torch.optim",
    ),
    "cache": Advice(
        "cache",
        "A value remembered from earlier is state as soon as what it was computed from has moved on: "
        "save it, or compute it anew at steps that do not depend on where a run was interrupted.",
        words="cache cached memo lru",
    ),
    "aliasing": Advice(
        "sharing",
        "state_dict() hands out live tensors, lists and dicts: keep a copy where a copy is meant. After "
        "loading, tie again what was tied, before the optimizer is built around it.",
    ),
    "counter": Advice(
        "counter",
        "Put the number into the state_dict() of the object that counts, or make it a component: "
        'Attributes(owner, "name").',
        hints=(
            "step steps epoch epochs iter iteration count counter counts updates calls seen "
            "completed trained tick total index ptr"
        ),
    ),
    "model": Advice(
        "weights and buffers",
        "Save the whole state_dict() of the module and load it strictly. Buffers registered with "
        "persistent=False, flags such as requires_grad and training, attributes set on a parameter, "
        "and weights that only an optimizer holds, such as master copies, are in no state_dict(): "
        "save them yourself.",
        names=("running_mean running_var num_batches_tracked requires_grad training param_groups.params"),
        hints="model module net network weight bias hidden",
    ),
    "variable": Advice(
        "variable",
        "Move it out of the function, closure or module into an object with a state_dict(), or make "
        'it a component: Attributes(owner, "name"). The local variables of a suspended function '
        "cannot be restored from outside.",
    ),
    "other": Advice(
        "other state",
        "Put it into the state_dict() of the object that owns it, or make it a component of its own: "
        'Attributes(owner, "name").',
    ),
}


def table(column: str) -> dict[str, str]:
    """Return which kind each word of one column of `KINDS` stands for."""
    return {word: kind for kind, advice in KINDS.items() for word in getattr(advice, column).split()}


NAMES: Final = table("names")
WORDS: Final = table("words")
HINTS: Final = table("hints")
CLASSES: Final = table("classes")
MODULES: Final = "torch.nn."


def classify(path: str, *, holder: Sequence[str] = (), default: str = "other") -> str:
    """Name the kind of state that lies at a path.

    What the piece itself is called decides, then the class of its holder, then the names on the way to it, the last
    of them first: what is near says more than what is far. Counters and modules are named only where nothing else
    is known: `ema.step` belongs to an average.

    Args:
        path: A path as a report has it.
        holder: Qualified names of the class of the object that holds the piece, and of that class's bases.
        default: The kind of a path that says nothing; `variable` suits locals, cells and globals.

    Returns:
        A key of `KINDS`: `ema` for `ema.updates`, `counter` for `trainer.updates`, `scheduler` for
        `optimizer.param_groups[0].lr`.
    """
    names = names_of(path)
    return (
        NAMES.get(".".join(names[1::-1]))
        or NAMES.get("".join(names[:1]))
        or said(WORDS, names[:1])
        or of_class(holder)
        or said(WORDS, names[1:])
        or said(HINTS, names)
        or ("model" if any(name.startswith(MODULES) for name in holder) else default)
    )


def names_of(path: str) -> list[str]:
    """Return the names of a path in small letters, `trainLoader` as `train_loader`, the last name first.

    Indices and keys are not among them: the parameter in `velocity[model.weight]` is whose velocity it is. Neither is
    the source text by which an iterator is called, but that it is one.
    """
    path = re.sub(r"\biter(?=[(\[])", "iterator", path)
    cut = 1
    while cut:
        path, cut = re.subn(r"\[[^\[\]]*\]|\([^()]*\)", "", path)
    words = re.findall(r"\w+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", path).lower())
    return [word for word in reversed(words) if not word.isdigit()]


def said(table: dict[str, str], names: Iterable[str]) -> str | None:
    """Return the kind that the first telling name stands for, each as a whole before its parts, their last first."""
    words = (word for name in names for word in (name, *reversed(name.split("_"))))
    return next((table[word] for word in words if word in table), None)


def of_class(holder: Iterable[str]) -> str | None:
    """Return the kind of state that an object of a class holds: by the class's module, else by its name."""
    for name in holder:
        modules = [module for module in CLASSES if name.startswith(f"{module}.")]
        if kind := CLASSES[max(modules, key=len)] if modules else said(WORDS, names_of(name)[:1]):
            return kind
    return None


def kind_of(suspect: Suspect) -> str:
    """One of the kinds of `schemas/audit.schema.json`."""
    if suspect.kind in ("alias", "storage"):
        return "aliasing"
    if suspect.sort == "rng":
        return "generator"
    held = suspect.label is not None and suspect.label.kind in ("local", "contents", "global")
    whole = "counter" if suspect.sort == "int" else "other"
    return classify(suspect.path, holder=suspect.holder, default="variable" if held else whole)
