"""The walk over a job's objects: complete, harmless, and readable; the difference and the transplant."""

import collections
import copy
import functools
import pickle
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from resume_audit import Job
from resume_audit.graph.cut import Cutter
from resume_audit.graph.difference import difference
from resume_audit.graph.patch import Patch
from resume_audit.graph.setter import Setter
from resume_audit.graph.walk import Walk


class Holder:
    """Something to hang values on."""

    def __init__(self, **values: object) -> None:
        self.__dict__.update(values)


class Touchy:
    """Every method that a careless walk might call raises."""

    __slots__ = ("__dict__", "slot")

    def _refuse(self, *_: object) -> Any:
        raise AssertionError("the walk has called a method of the job's")

    __eq__ = __hash__ = __len__ = __iter__ = __bool__ = __repr__ = __getattr__ = __getitem__ = __contains__ = _refuse
    __reduce__ = __reduce_ex__ = __getstate__ = __copy__ = __deepcopy__ = __int__ = __call__ = _refuse
    state = property(_refuse)

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError("the walk has asked for an attribute the usual way")


class TouchyList(list[Any]):
    __iter__ = __len__ = __getitem__ = __eq__ = Touchy._refuse


class TouchyDict(dict[Any, Any]):
    __iter__ = __len__ = __getitem__ = keys = items = values = Touchy._refuse


def walk(value: object) -> Walk:
    """Return the walk from one value."""
    return Walk().of_value(value)


def paths(value: object) -> list[str]:
    """Return the paths of all that is reachable from one value."""
    return [node.path for node in walk(value).nodes]


def transplant(one: Any, two: Any) -> list[str]:
    """Set everything in `two` that differs from `one` to what `one` has; return the paths that differed."""
    ours, theirs = walk(one), walk(two)
    found = difference(ours.snapshot, pickle.loads(pickle.dumps(theirs.snapshot)))
    patch: Patch = pickle.loads(pickle.dumps(Cutter(ours, found, theirs.nodes).cut()))
    Setter(walk(two), patch).apply(patch.changes)
    return [suspect.path for suspect in found.suspects]


class TestHarmless:
    """A walk calls no method of the job's objects and changes nothing."""

    def test_no_method_of_the_jobs_is_called(self) -> None:
        """Odd comparison, hashing, attributes, properties, iteration: none of them is touched."""
        odd = object.__new__(Touchy)
        Touchy.slot.__set__(odd, [1, nn.Linear(1, 1)])  # type: ignore[attr-defined]
        value = Holder(odd=odd, items=TouchyList([1, [odd]]), entries=TouchyDict(a=[odd], b=2))

        found = paths(value)

        assert "value.odd.slot[1].weight" in found
        assert "value.entries.a" in found

    def test_nothing_is_changed(self) -> None:
        """Generators, iterators and tensors go on as if nobody had looked."""

        def series() -> Iterator[int]:
            for i in range(5):
                yield i * i

        running, listed, made = series(), iter([1, 2, 3]), torch.Generator().manual_seed(3)
        next(running)
        next(listed)
        before = made.get_state().clone()
        value = Holder(
            running=running, listed=listed, made=made, pairs=zip([1], [2], strict=True), rng=random.Random(1)
        )

        walk(value)
        walk(value)

        assert (list(running), list(listed), list(value.__dict__["pairs"])) == ([1, 4, 9, 16], [2, 3], [(1, 2)])
        assert torch.equal(made.get_state(), before)

    def test_depth_does_not_matter(self) -> None:
        """Ten thousand levels of nesting are walked, compared and set."""
        one: list[Any] = [1.0]
        for _ in range(10_000):
            one = [one, "x"]
        two: list[Any] = [2.0]
        for _ in range(10_000):
            two = [two, "x"]

        transplant(one, two)

        for _ in range(10_000):
            two = two[0]
        assert two == [1.0]

    def test_cycles_end(self) -> None:
        """An object that holds itself is one node."""
        value = Holder()
        value.__dict__["me"] = value
        items: list[Any] = []
        items.append(items)
        value.__dict__["items"] = items

        assert len(walk(value).nodes) == 3

    def test_what_cannot_be_entered_is_named(self) -> None:
        """A lock and an open file are told with the reason."""
        import threading

        with Path(__file__).open(encoding="utf-8") as file:
            nodes = walk(Holder(lock=threading.Lock(), file=file)).nodes

        assert {node.path: node.why for node in nodes if node.kind == "closed"} == {
            "value.lock": "a lock",
            "value.file": "an open file",
        }


class TestPaths:
    """Paths are what a programmer would write."""

    def test_modules_and_optimizers_are_named_as_torch_names_them(self) -> None:
        """`model.0.weight`, `optimizer.state[model.0.weight].exp_avg`, `optimizer.param_groups[0].lr`."""
        model = nn.Sequential(nn.Linear(2, 1))
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        job = Job({"optimizer": optimizer, "model": model}, lambda: None)

        found = [node.path for node in Walk().of_job(job, __name__).nodes]

        assert {"model.0.weight", "model.0.weight.grad", "optimizer.state[model.0.weight].exp_avg"} <= set(found)

    def test_variables_of_functions_have_their_own_names(self) -> None:
        """A closure's variable, a generator's local, the iterator of its loop."""
        counts = [nn.Identity()]

        def loop() -> Iterator[int]:
            window = [object()]
            for item in [object(), object()]:
                yield len(counts) + len(window) + (item is None)

        run = loop()
        next(run)
        job = Job({}, lambda: next(run))  # type: ignore[arg-type, return-value]

        found = [node.path for node in Walk().of_job(job, __name__).nodes]

        assert {"counts", "run", "run.window", "run.iter([object(), object()])"} <= set(found)


def _module() -> nn.Module:
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    module(torch.randn(4, 2))
    return module


CASES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "number": (lambda: Holder(a=1), lambda: Holder(a=2)),
    "type of a number": (lambda: Holder(a=1), lambda: Holder(a=1.0)),
    "missing attribute": (lambda: Holder(a=[1]), Holder),
    "added attribute": (Holder, lambda: Holder(a=1)),
    "entry": (lambda: {"a": {"b": 1}}, lambda: {"a": {"b": 2, "c": 3}}),
    "list": (lambda: Holder(a=[1, 2]), lambda: Holder(a=[])),
    "list of objects": (lambda: [Holder(a=1), Holder(a=2)], lambda: [Holder(a=3)]),
    "tuple of objects": (lambda: Holder(a=({"x": 1}, 5)), lambda: Holder(a=({"x": 2}, 6))),
    "deque": (lambda: collections.deque([1, 2], 4), lambda: collections.deque([3], 4)),
    "set": (lambda: Holder(a={1, 2}), lambda: Holder(a={2, 3})),
    "tensor": (lambda: Holder(a=torch.ones(2)), lambda: Holder(a=torch.zeros(2))),
    "tensor of another type": (lambda: Holder(a=torch.ones(2, dtype=torch.float64)), lambda: Holder(a=torch.ones(3))),
    "no tensor": (lambda: Holder(a=torch.ones(2)), lambda: Holder(a=None)),
    "array": (lambda: Holder(a=np.ones(2)), lambda: Holder(a=np.zeros(2))),
    "module": (lambda: (torch.manual_seed(1), _module())[1], lambda: (torch.manual_seed(2), _module())[1]),
    "torch generator": (lambda: torch.Generator().manual_seed(1), lambda: torch.Generator().manual_seed(2)),
    "numpy generator": (lambda: np.random.default_rng(1), lambda: np.random.default_rng(2)),
    "python generator": (lambda: random.Random(1), lambda: random.Random(2)),
    "counter": (lambda: collections.Counter("aab"), lambda: collections.Counter("b")),
    "partial": (lambda: functools.partial(print, end=[1]), lambda: functools.partial(print, end=[2])),
}


class TestTransplant:
    """What differs is found, and set to the other run's value."""

    @pytest.mark.parametrize("name", CASES)
    def test_everything_that_differs_can_be_set(self, name: str) -> None:
        """After a transplant nothing differs any more."""
        one, two = (make() for make in CASES[name])

        assert transplant(one, two)

        left = difference(walk(one).snapshot, walk(two).snapshot).suspects
        assert [suspect for suspect in left if suspect.kind != "order"] == []

    def test_equal_objects_do_not_differ(self) -> None:
        """A copy differs in nothing."""
        value = {"a": [1, {"b": torch.ones(2)}], "c": Holder(d=(1, 2))}

        assert difference(walk(value).snapshot, walk(copy.deepcopy(value)).snapshot).suspects == []

    def test_shared_storage_is_restored(self) -> None:
        """Two tensors that were one storage are one storage again."""
        base, other = torch.arange(4.0), torch.arange(4.0)
        one, two = Holder(a=base, b=base[1:]), Holder(a=other, b=other[1:].clone())

        found = transplant(one, two)

        two.__dict__["a"][1] = 9.0
        assert found == ["value.b"]
        assert two.__dict__["b"][0] == 9.0

    def test_a_known_object_is_restored_as_itself(self) -> None:
        """Two names of one list name one list again."""
        shared: list[int] = [1]
        one, two = Holder(a=shared, b=shared), Holder(a=[1], b=[1])

        transplant(one, two)

        assert two.__dict__["a"] is two.__dict__["b"]

    def test_iterators_are_moved(self) -> None:
        """An iterator over a list, and one in `enumerate`, stand where the other run's stood."""
        one, two = Holder(a=iter([1, 2, 3]), b=enumerate([4, 5, 6])), Holder(a=iter([1, 2, 3]), b=enumerate([4, 5, 6]))
        next(one.__dict__["a"])
        next(one.__dict__["b"])

        transplant(one, two)

        assert (list(two.__dict__["a"]), list(two.__dict__["b"])) == ([2, 3], [(1, 5), (2, 6)])
