"""Reports to render, made by hand: one for each thing that a report can say."""

import copy
from typing import Any

Report = dict[str, Any]

UPDATES = {"path": "ema.updates", "kind": "ema", "uninterrupted": "5", "resumed": "0"}
DRAWN = {"path": "rng[random]", "kind": "generator", "uninterrupted": "state 1", "resumed": "state 2"}
UNTIED = {
    "path": "model.head.weight",
    "kind": "aliasing",
    "uninterrupted": "shares the storage of model.embed.weight",
    "resumed": "has a storage of its own",
}
CURSOR = {"path": "loader.cursor", "kind": "data_order", "uninterrupted": "20", "resumed": "0"}


MOMENTS = ("exp_avg", "exp_avg_sq")
LAYERS = [(0, "weight"), (0, "bias"), (2, "weight"), (2, "bias")]


def moment(path: str) -> dict[str, str]:
    """Return an optimizer's entry that differs in every element."""
    values = {"uninterrupted": f"float32[8] [{'0.0226508, ' * 4}…]", "resumed": f"float32[8] [{'-0.0329977, ' * 4}…]"}
    return {"path": path, "kind": "optimizer"} | values


def one_object(path: str, other: str) -> dict[str, str]:
    """Return a place that after the resume holds the object of another."""
    values = {"uninterrupted": "an object of its own", "resumed": f"the same object as {other}"}
    return {"path": path, "kind": "aliasing"} | values


def resume(*after: int, **given: object) -> dict[str, Any]:
    """Return an exact resume, or another as far as given."""
    exact = {
        "interrupted_after": list(after),
        "verdict": "EXACT",
        "saving_disturbs": False,
        "first_divergence": None,
        "moments": None,
        "healed_after": None,
        "drift": None,
        "trace": [{"step": step, "parameters": 0.0, "outcomes": []} for step in (0, *range(after[-1] + 1, 9))],
        "vacuous": [],
        "diagnosis": None,
    }
    return exact | given


def diagnosis(**given: object) -> dict[str, Any]:
    """Return a diagnosis that found nothing, or what is given."""
    nothing: dict[str, Any] = {
        "proven": [],
        "minimal": bool(given.get("proven")),
        "suspects": [],
        "without_effect": [],
        "out_of_reach": [],
        "aliasing": [],
        "unproven": None if given.get("proven") else "no reachable state differs after loading.",
    }
    return nothing | given


def diverging(*after: int, **given: object) -> dict[str, Any]:
    """Return a resume that has lost something, visible two steps after the load."""
    start = after[-1] + 2
    seen = {"step": start, "outcomes": ["model", "metrics.loss"]}
    trace = [{"step": 0, "parameters": 0.0, "outcomes": []}]
    trace += [
        {
            "step": step,
            "parameters": 0.0 if step < start else 10.0 ** (step - 9),
            "outcomes": [] if step < start else ["model", "metrics.loss"],
        }
        for step in range(after[-1] + 1, 9)
    ]
    values: dict[str, Any] = {
        "verdict": "DIVERGES",
        "first_divergence": seen,
        "moments": {"lost_after": after[-1], "first_visible": seen},
        "drift": {"parameters": 0.1, "metrics": {"loss": 0.00321, "lr": 0.0}},
        "trace": trace,
        "diagnosis": diagnosis(
            proven=[UPDATES],
            without_effect=["loader.started_at"],
            out_of_reach=[{"path": "lock", "why": "a lock cannot be entered."}],
        ),
    }
    return resume(*after, **(values | given))


def report(**given: object) -> Report:
    """Return an exact report, or another as far as given."""
    exact: Report = {
        "schema_version": 1,
        "job": "train_job.py:make_job",
        "seed": 11,
        "steps": 8,
        "verdict": "EXACT",
        "components": ["model", "optimizer", "ema"],
        "options": {
            "interrupt": [1, 5],
            "every": False,
            "chain": False,
            "matrix": False,
            "fresh": False,
            "jobs": 2,
            "timeout": None,
        },
        "versions": {"python": "3.11.2", "torch": "2.13.0+cpu", "numpy": "2.4.6"},
        "interruptions": [{"after": 1, "why": "requested"}, {"after": 5, "why": "requested"}],
        "baseline": {"repeatable": True, "first_difference": None},
        "resumes": [resume(1), resume(5)],
        "matrix": None,
        "error": None,
    }
    return copy.deepcopy(exact | given)


def cell(component: str, after: int, outcome: str, **given: object) -> dict[str, Any]:
    """Return a cell of the matrix."""
    nothing = {"first_step": None, "span": None, "message": None}
    return {"component": component, "interrupted_after": after, "outcome": outcome} | nothing | given


EXACT = report()
DIVERGES = report(
    verdict="DIVERGES",
    resumes=[resume(1), diverging(5)],
    matrix=[
        cell("model", 1, "diverges", first_step=2),
        cell("model", 5, "diverges", first_step=6),
        cell("optimizer", 1, "heals", first_step=3, span=2),
        cell("optimizer", 5, "error", message="KeyError: 'state'"),
        cell("ema", 1, "inert"),
        cell("ema", 5, "diverges", first_step=7),
    ],
)
SUSPECTED = report(
    verdict="DIVERGES",
    resumes=[
        diverging(
            5,
            healed_after=7,
            diagnosis=diagnosis(
                suspects=[CURSOR, UPDATES, UNTIED],
                aliasing=[
                    {
                        "paths": ["model.head.weight", "model.embed.weight"],
                        "uninterrupted": "shared",
                        "resumed": "separate",
                    }
                ],
                unproven="`loader` is suspended in a generator, whose frame cannot be set.",
            ),
        )
    ],
)
FAMILIES = report(
    verdict="DIVERGES",
    resumes=[
        diverging(
            5,
            diagnosis=diagnosis(
                proven=[
                    *(moment(f"opt_g.state[gen.{n}.{name}].{part}") for part in MOMENTS for n, name in LAYERS),
                    *(
                        one_object(f"opt_d.state[disc.{n}.{name}].{part}", f"opt_g.state[gen.{n}.{name}].{part}")
                        for part in (*MOMENTS, "step")
                        for n, name in LAYERS
                    ),
                ],
                without_effect=[f"gen.{n}.weight.grad" for n in range(9)],
                aliasing=[
                    {
                        "paths": [f"opt_{net[0]}.state[{net}.{n}.{name}].{part}" for net in ("disc", "gen")],
                        "uninterrupted": "separate",
                        "resumed": "shared",
                    }
                    for part in (*MOMENTS, "step")
                    for n, name in LAYERS
                ],
            ),
        )
    ],
)
BESIDE_PROOF = report(
    verdict="DIVERGES",
    resumes=[
        diverging(
            5,
            vacuous=[{"what": "nothing_loaded", "message": "The load left every component as the factory made it."}],
        )
    ],
)
UNEXPLAINED = report(verdict="DIVERGES", resumes=[diverging(5, diagnosis=diagnosis())])
DISTURBED = report(
    verdict="DIVERGES",
    resumes=[
        resume(
            5,
            verdict="DIVERGES",
            saving_disturbs=True,
            first_divergence={"step": 6, "outcomes": ["rng"]},
            diagnosis=diagnosis(suspects=[DRAWN], unproven="the save itself changes the job that goes on."),
        )
    ],
)
ABSTAIN = report(
    verdict="ABSTAIN",
    resumes=[],
    baseline={
        "repeatable": False,
        "first_difference": {"step": 3, "outcomes": ["metrics.loss"], "state": ["words", "loader.order"]},
    },
)
ERROR = report(
    verdict="ERROR",
    resumes=[],
    error={
        "phase": "save",
        "step": 5,
        "type": "OSError",
        "message": "no space left",
        "traceback": "Traceback (most recent call last):\n  File ..., in save\nOSError: no space left\n",
    },
)
FAILED = report(
    verdict="ERROR",
    resumes=[resume(k, verdict="ERROR", trace=[]) for k in (1, 5)],
    error={
        "phase": "load",
        "step": 1,
        "type": "KeyError",
        "message": "'optimizer'",
        "traceback": "KeyError: 'optimizer'\n",
    },
)
VACUOUS = report(
    verdict="DIVERGES",
    resumes=[
        resume(
            5,
            verdict="DIVERGES",
            vacuous=[{"what": "nothing_loaded", "message": "The load left every component as the factory made it."}],
        )
    ],
)
ALL = {
    "exact": EXACT,
    "diverges": DIVERGES,
    "suspected": SUSPECTED,
    "families": FAMILIES,
    "beside_proof": BESIDE_PROOF,
    "unexplained": UNEXPLAINED,
    "disturbed": DISTURBED,
    "abstain": ABSTAIN,
    "error": ERROR,
    "failed": FAILED,
    "vacuous": VACUOUS,
}
