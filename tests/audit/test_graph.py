"""The walk over a job's objects: complete, harmless, and readable; the difference and the transplant."""

import array
import collections
import contextvars
import copy
import ctypes
import enum
import functools
import importlib
import itertools
import logging
import pickle
import queue
import random
import struct
import sys
import threading
import types
import warnings
import zlib
from collections.abc import Callable, Iterator
from multiprocessing import sharedctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from resume_audit import Attributes, Gradients, Job
from resume_audit.graph.containers import LISTED
from resume_audit.graph.cut import Cutter
from resume_audit.graph.difference import Difference, difference
from resume_audit.graph.nodes import Snapshot
from resume_audit.graph.patch import Patch
from resume_audit.graph.setter import Setter
from resume_audit.graph.walk import Walk


class Stage(enum.Enum):
    """A phase of a training."""

    EARLY = 1
    LATE = 2


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


class TaggedList(list[int]):
    """A list with an attribute."""

    def __init__(self, item: int, tag: int) -> None:
        super().__init__([item])
        self.tag = tag


class TouchyDict(dict[Any, Any]):
    __iter__ = __len__ = __getitem__ = keys = items = values = Touchy._refuse


def walk(value: object) -> Walk:
    """Return the walk from one value."""
    return Walk().of_value(value)


def paths(value: object) -> list[str]:
    """Return the paths of all that is reachable from one value."""
    return [node.path for node in walk(value).nodes]


def cut(one: Any, two: Any) -> tuple[Difference, Patch]:
    """Return what differs between two values, and the patch from the first to the second."""
    ours, theirs = walk(one), walk(two)
    found = difference(ours.snapshot, pickle.loads(pickle.dumps(theirs.snapshot)))
    return found, pickle.loads(pickle.dumps(Cutter(ours, found, theirs.nodes).cut()))


def transplant(one: Any, two: Any) -> list[str]:
    """Set everything in `two` that differs from `one` to what `one` has; return the paths that differed."""
    found, patch = cut(one, two)
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

    def test_what_c_code_hides_is_named_by_its_class(self) -> None:
        """An object made in C is told as such, and so is one of a Python class built on it, beside its attributes."""

        class Format(struct.Struct):
            pass

        derived = Format("i")
        derived.__dict__["used"] = [object()]
        nodes = {
            node.path: node for node in walk(Holder(made=zlib.decompressobj(), derived=derived, mark=object())).nodes
        }

        assert nodes["value.made"].why == "an object made in C, zlib.Decompress"
        assert nodes["value.derived"].kind == "closed"
        assert "Format" in nodes["value.derived"].why
        assert "value.derived.used[0]" in nodes
        assert nodes["value.mark"].kind == "object"

    def test_what_a_closed_iterator_holds_is_walked(self) -> None:
        """The list behind `pairwise`, and what `tee` reads from, are found though the iterators are closed."""
        rows, more = [object()], [object()]
        nodes = walk(Holder(pairs=itertools.pairwise(iter(rows)), copies=itertools.tee(iter(more)))).objects

        assert any(item is rows for item in nodes)
        assert any(item is more for item in nodes)

    def test_what_cannot_be_entered_is_named(self) -> None:
        """A lock and an open file are told with the reason."""
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

    def test_an_adapter_names_what_it_declares_and_nothing_else(self) -> None:
        """`progress.epoch` for a declared attribute; the rest of the object and a model go by their own names."""

        class Trainer:
            def __init__(self) -> None:
                self.epoch, self.model, self.waiting = [object()], nn.Linear(1, 1), [object()]

            def step(self) -> None: ...

        trainer = Trainer()
        job = Job({"progress": Attributes(trainer, "epoch"), "grads": Gradients(trainer.model)}, trainer.step)

        found = [node.path for node in Walk().of_job(job, __name__).nodes]

        assert {"progress.epoch", "progress.epoch[0]", "trainer.waiting[0]", "trainer.model.weight"} <= set(found)
        assert not [path for path in found if path.startswith(("grads", "progress.waiting"))]

    def test_a_declared_number_goes_by_the_name_of_its_component(self) -> None:
        """What differs is told as `progress.epoch`."""

        def snapshot(epoch: int) -> Snapshot:
            return Walk().of_job(Job({"progress": Attributes(Holder(epoch=epoch), "epoch")}, print), __name__).snapshot

        assert [suspect.path for suspect in difference(snapshot(1), snapshot(2)).suspects] == ["progress.epoch"]

    def test_what_an_optimizer_optimizes_has_a_name_of_its_own(self) -> None:
        """A tensor held far away is named there, and not `optimizer.param_groups[0].params[0]`."""
        owner = Holder(inner=Holder(deep=Holder(deeper=Holder(deepest=Holder(master=[torch.ones(1)])))))
        master = owner.__dict__["inner"].deep.deeper.deepest.master
        optimizer = torch.optim.SGD(master, 0.1)
        job = Job({"optimizer": optimizer}, lambda: {"master": owner})

        found = [node.path for node in Walk().of_job(job, __name__).nodes]

        assert "owner.inner.deep.deeper.deepest.master[0]" in found

    def test_hooks_for_all_modules_and_optimizers_are_found(self) -> None:
        """What a hook of the whole library remembers is named."""
        level, taken = [object()], [object()]
        handles = [
            nn.modules.module.register_module_forward_hook(lambda *_: level.clear()),
            register_optimizer_step_post_hook(lambda *_: taken.clear()),
        ]

        found = {node.path for node in Walk().of_job(Job({}, print), __name__).nodes}
        for handle in handles:
            handle.remove()

        assert {"level[0]", "taken[0]"} <= found

    def test_handlers_of_the_jobs_are_opened(self) -> None:
        """What a handler of a job's own class remembers is named; logging's own handlers are left alone."""

        class Watch(logging.Handler):
            best = 0.0

        log = logging.Logger("train")  # noqa: LOG001 -- one that no other test sees
        log.addHandler(logging.NullHandler())
        log.addHandler(Watch())
        log.handlers[1].__dict__["seen"] = [object()]

        found = paths(log)

        assert "value.handlers[1].seen[0]" in found
        assert not [path for path in found if "handlers[0]" in path or "lock" in path]

    def test_data_of_the_jobs_other_modules_is_found(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What a function reads or writes as `settings.COUNT`, also where it imports that module for itself."""
        (tmp_path / "job_settings.py").write_text("COUNT = [[], 1]\nUNUSED = [[], 2]\n", encoding="utf-8")
        (tmp_path / "job_late.py").write_text("TOTAL = [[], 3]\n", encoding="utf-8")
        (tmp_path / "job_main.py").write_text(
            "import job_settings as s\ndef step():\n    import job_late\n    return s.COUNT, job_late.TOTAL\n",
            encoding="utf-8",
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        names = ("job_late", "job_main", "job_settings")
        modules = {name: importlib.import_module(name) for name in names}

        found = {node.path for node in Walk().of_job(Job({}, modules["job_main"].step), "job_main").nodes}
        for name in names:
            monkeypatch.delitem(sys.modules, name)

        assert {"job_settings.COUNT", "job_late.TOTAL"} <= found
        assert not [path for path in found if "UNUSED" in path]

    def test_iterators_side_by_side_have_paths_of_their_own(self) -> None:
        """What `zip` takes from is told apart by its number, and each can be moved by itself."""
        one, two = (zip(itertools.cycle("ab"), itertools.count(1), strict=False) for _ in range(2))
        next(one)
        next(one)

        found = transplant(held := [one], other := [two])

        assert any(path.startswith("value[0][0]") for path in found)
        assert any(path.startswith("value[0][1]") for path in found)
        assert next(held[0]) == next(other[0]) == ("a", 3)

    def test_data_behind_an_object_of_another_module_is_found(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An object's class and the globals that its methods use are found where the job's module names neither."""
        (tmp_path / "job_parts.py").write_text(
            "SEEN = [[], 1]\nclass Loader:\n    shared = [[], 2]\n    def take(self):\n        return SEEN\n",
            encoding="utf-8",
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        parts = importlib.import_module("job_parts")

        found = {node.path for node in Walk().of_job(Job({}, functools.partial(print, parts.Loader())), "").nodes}
        monkeypatch.delitem(sys.modules, "job_parts")

        assert {"job_parts.SEEN", "SEEN"} & found
        assert [path for path in found if path.endswith("Loader.shared")]


class Record(ctypes.Structure):
    """A structure of C."""

    _fields_ = (("count", ctypes.c_int), ("means", ctypes.c_double * 2))


class Table:
    """Rows by number, without an iterator of their own."""

    def __getitem__(self, row: int) -> int:
        if row > 9:
            raise IndexError
        return row


def _advanced(iterator: Any, steps: int) -> Any:
    for _ in range(steps):
        next(iterator, None)
    return iterator


def _split(first: int, second: int) -> Any:
    one, two = itertools.tee(iter([torch.full((), float(i)) for i in range(200)]))
    return _advanced(one, first), _advanced(two, second)


def _rows() -> list[torch.Tensor]:
    return [torch.full((), float(i)) for i in range(5)]


def _spawned(count: int) -> np.random.Generator:
    generator = np.random.default_rng(3)
    if count:
        generator.spawn(count)
    return generator


def _local(**values: int) -> threading.local:
    made = threading.local()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def _masked(*mask: int) -> np.ma.MaskedArray[Any, Any]:
    return np.ma.array(np.arange(3.0), mask=list(map(bool, mask)))


def _queue(*items: object) -> queue.SimpleQueue[Any]:
    made: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for item in ("taken", *items):
        made.put(item)
    made.get()
    return made


def _quantized(value: float) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on their way out, but jobs have them
        return torch.quantize_per_tensor(torch.full((2,), value), 1.0, 0, torch.qint8)


def _nested(value: float) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a prototype, it says
        return torch.nested.nested_tensor([torch.full((2,), value), torch.ones(3)])


def _compressed(value: float) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # likewise
        return (torch.eye(2) * value).to_sparse_csr()


def _with_gradient(value: float) -> nn.Embedding:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        table = nn.Embedding(3, 2, sparse=True)
    if value:
        (table(torch.tensor([1])) * value).sum().backward()
    return table


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
    "namespace": (lambda: types.SimpleNamespace(a=[1], b=2), lambda: types.SimpleNamespace(a=[3])),
    "read-only mapping": (
        lambda: Holder(a=types.MappingProxyType({"x": [1]})),
        lambda: Holder(a=types.MappingProxyType({"x": [2]})),
    ),
    "new read-only mapping": (lambda: Holder(a=types.MappingProxyType({"x": [1]})), lambda: Holder(a=None)),
    "bound of a deque": (lambda: Holder(a=collections.deque([1, 2], 2)), lambda: Holder(a=collections.deque([1, 2]))),
    "deque of objects": (
        lambda: Holder(a=collections.deque([[1], [2]], 2)),
        lambda: Holder(a=collections.deque([[1]], 3)),
    ),
    "list in place of a deque": (lambda: Holder(a=collections.deque([1], 2)), lambda: Holder(a=[1])),
    "kind of a dict": (lambda: Holder(a=collections.OrderedDict(x=1)), lambda: Holder(a={"x": 1})),
    "list with attributes": (lambda: TaggedList(1, 2), lambda: TaggedList(3, 4)),
    "new list with attributes": (lambda: Holder(a=TaggedList(1, 2)), lambda: Holder(a=None)),
    "tuple of another length": (lambda: Holder(a=([1], [2])), lambda: Holder(a=([1],))),
    "queue": (lambda: Holder(a=_queue(1, 2)), lambda: Holder(a=_queue(3))),
    "queue of objects": (lambda: Holder(a=_queue([1], [2])), lambda: Holder(a=_queue([3], [2]))),
    "new queue": (lambda: Holder(a=_queue([1], 2)), lambda: Holder(a=None)),
    "number of C": (lambda: Holder(a=ctypes.c_int(3)), lambda: Holder(a=ctypes.c_int(4))),
    "numbers of C": (lambda: Holder(a=(ctypes.c_float * 2)(1, 2)), lambda: Holder(a=(ctypes.c_float * 2)(1, 3))),
    "structure of C": (lambda: Holder(a=Record(1)), lambda: Holder(a=Record(2))),
    "new structure of C": (lambda: Holder(a=Record(1)), lambda: Holder(a=None)),
    "shared number": (lambda: Holder(a=sharedctypes.Value("i", 1)), lambda: Holder(a=sharedctypes.Value("i", 2))),
    "machine numbers": (lambda: array.array("i", [1, 2]), lambda: array.array("i", [3])),
    "new machine numbers": (lambda: Holder(a=array.array("i", [1, 2])), lambda: Holder(a=None)),
    "bytes": (lambda: bytearray(b"ab"), lambda: bytearray(b"c")),
    "arguments of an exception": (lambda: ValueError(1), lambda: ValueError(2)),
    "thread's own": (lambda: _local(a=1, b=2), lambda: _local(a=3, c=4)),
    "rows by number": (lambda: Holder(a=_advanced(iter(Table()), 3)), lambda: Holder(a=iter(Table()))),
    "rows of an array": (lambda: Holder(a=_advanced(iter(np.arange(4)), 3)), lambda: Holder(a=iter(np.arange(4)))),
    "rows at their end": (lambda: Holder(a=_advanced(iter(_rows()), 9)), lambda: Holder(a=iter(_rows()))),
    "shared rows": (lambda: Holder(a=_split(3, 1)), lambda: Holder(a=_split(0, 0))),
    "shared rows, far apart": (lambda: Holder(a=_split(150, 10)), lambda: Holder(a=_split(0, 0))),
    "shared rows, further than before": (lambda: Holder(a=_split(0, 2)), lambda: Holder(a=_split(60, 0))),
    "new shared rows": (lambda: Holder(a=_split(3, 1)), lambda: Holder(a=None)),
    "groups": (
        lambda: Holder(a=_advanced(itertools.groupby([1, 1, 2, 3]), 2)),
        lambda: Holder(a=itertools.groupby([1, 1, 2, 3])),
    ),
    "chained rows": (
        lambda: Holder(a=_advanced(itertools.chain(_rows(), _rows()), 6)),
        lambda: Holder(a=itertools.chain(_rows(), _rows())),
    ),
    "rows cut off": (
        lambda: Holder(a=_advanced(itertools.islice(_rows(), 3), 2)),
        lambda: Holder(a=itertools.islice(_rows(), 3)),
    ),
    "new iterator over rows": (lambda: Holder(a=_advanced(iter(_rows()), 2)), lambda: Holder(a=None)),
    "seeds": (lambda: Holder(a=np.random.SeedSequence(1)), lambda: Holder(a=np.random.SeedSequence(2))),
    "children of a generator": (lambda: Holder(a=_spawned(2)), lambda: Holder(a=_spawned(0))),
    "fewer children of a generator": (lambda: Holder(a=_spawned(0)), lambda: Holder(a=_spawned(2))),
    "new numpy generator": (lambda: Holder(a=_spawned(2)), lambda: Holder(a=None)),
    "masked array": (lambda: Holder(a=_masked(0, 1, 0)), lambda: Holder(a=_masked(1, 0, 0))),
    "new masked array": (lambda: Holder(a=_masked(0, 1, 0)), lambda: Holder(a=None)),
    "sparse tensor": (lambda: Holder(a=torch.eye(2).to_sparse()), lambda: Holder(a=torch.zeros(2, 2).to_sparse())),
    "compressed tensor": (lambda: Holder(a=_compressed(1)), lambda: Holder(a=_compressed(2))),
    "quantized tensor": (lambda: Holder(a=_quantized(1.0)), lambda: Holder(a=_quantized(2.0))),
    "nested tensor": (lambda: Holder(a=_nested(1)), lambda: Holder(a=_nested(2))),
    "sparse gradient": (lambda: _with_gradient(1), lambda: _with_gradient(0)),
    "other sparse gradient": (lambda: _with_gradient(1), lambda: _with_gradient(2)),
    "partial": (lambda: functools.partial(print, end=[1]), lambda: functools.partial(print, end=[2])),
}


class TestTransplant:
    """What differs is found, and set to the other run's value."""

    def test_a_member_of_an_enumeration_is_set_as_itself(self) -> None:
        """What is compared by identity in the other run too is that run's own member, not a copy."""
        one, two = Holder(stage=Stage.LATE, later=[Stage.LATE]), Holder(stage=Stage.EARLY, later=[Stage.EARLY])

        transplant(one, two)

        assert two.__dict__["stage"] is Stage.LATE
        assert two.__dict__["later"][0] is Stage.LATE

    @pytest.mark.filterwarnings("ignore:TypedStorage")  # torch's own way to carry quantized tensors
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

    def test_a_context_variable_is_set(self) -> None:
        """What a context variable is in this context."""
        variable = contextvars.ContextVar("variable", default=0)
        holder = Holder(variable=variable)
        theirs = walk(holder).snapshot
        variable.set(5)
        ours = walk(holder)
        found = difference(ours.snapshot, theirs)
        patch = Cutter(ours, found, theirs.nodes).cut()
        variable.set(1)

        Setter(walk(holder), patch).apply(patch.changes)

        assert [suspect.path for suspect in found.suspects] == ["value.variable"]
        assert variable.get() == 5

    def test_an_object_in_many_places_is_replaced_in_all(self) -> None:
        """A tuple cannot be changed, so both of its holders get the other one."""
        one, two = ([1], [2]), ([1],)
        first, second = Holder(a=one, b=[one]), Holder(a=two, b=[two])

        transplant(first, second)

        assert second.__dict__["a"] == ([1], [2])
        assert second.__dict__["a"] is second.__dict__["b"][0]

    def test_what_cannot_be_copied_hinders_nothing_else(self) -> None:
        """A tensor that no other process can be given is out of reach, with the reason; the number beside it is set."""
        one = Holder(odd=torch.ones(1).to_mkldnn(), number=1)
        two = Holder(odd=torch.zeros(1).to_mkldnn(), number=2)
        found, patch = cut(one, two)
        Setter(walk(two), patch).apply(patch.changes)

        assert [found.suspects[index].path for index in patch.out_of_reach] == ["value.odd"]
        assert "copying it failed" in next(iter(patch.out_of_reach.values()))
        assert two.__dict__["number"] == 1

    def test_what_cannot_be_set_hinders_nothing_else(self) -> None:
        """The argument of a partial function is refused, with the reason; the number beside it is set."""
        one, two = Holder(call=functools.partial(print, 1), number=1), Holder(call=functools.partial(print, 2))
        found, patch = cut(one, two)

        refused = Setter(walk(two), patch).apply(patch.changes)

        assert {found.suspects[index].path: why for index, why in refused.items()} == {
            "value.call[0]": "there is no way to set the argument value.call[0]"
        }
        assert two.__dict__["number"] == 1

    def test_split_iterators_go_on_sharing_what_they_read(self) -> None:
        """Both halves of a split iterator give what the other run's would, each row once to either."""
        one, two = Holder(a=_split(70, 2)), Holder(a=_split(0, 0))

        transplant(one, two)

        ahead, behind = two.__dict__["a"]
        assert [int(row) for row in itertools.islice(ahead, 3)] == [70, 71, 72]
        assert [int(row) for row in behind] == list(range(2, 200))
        assert [int(row) for row in ahead] == list(range(73, 200))

    def test_an_object_that_is_broken_hinders_nothing_else(self) -> None:
        """A module without a place for buffers raises; the number beside it is set."""
        one, two = (Holder(module=nn.Identity(), number=number) for number in (1, 2))
        one.__dict__["module"].register_buffer("seen", torch.ones(1))
        del two.__dict__["module"].__dict__["_buffers"]
        found, patch = cut(one, two)

        refused = Setter(walk(two), patch).apply(patch.changes)

        assert {found.suspects[index].path: why for index, why in refused.items()} == {
            "value.module.seen": "setting it failed (KeyError: '_buffers')"
        }
        assert two.__dict__["number"] == 1

    def test_a_long_ordered_dict_is_set_in_its_own_order(self) -> None:
        """What is told as a whole is set as a whole: entries moved to the end stand there, and each is met once."""
        one, two = (collections.OrderedDict.fromkeys(range(LISTED + 2), 0) for _ in range(2))
        one.move_to_end(3)
        one[-1] = 1

        transplant(Holder(cache=one), Holder(cache=two))

        assert list(two.items()) == list(one.items())

    def test_iterators_are_moved(self) -> None:
        """An iterator over a list, and one in `enumerate`, stand where the other run's stood."""
        one, two = Holder(a=iter([1, 2, 3]), b=enumerate([4, 5, 6])), Holder(a=iter([1, 2, 3]), b=enumerate([4, 5, 6]))
        next(one.__dict__["a"])
        next(one.__dict__["b"])

        transplant(one, two)

        assert (list(two.__dict__["a"]), list(two.__dict__["b"])) == ([2, 3], [(1, 5), (2, 6)])


class TestTold:
    """What differs can be told apart by its text."""

    @pytest.mark.parametrize(
        ("one", "two"),
        [
            (list(range(999)), [*range(998), 0]),
            (torch.arange(999), torch.cat([torch.arange(998), torch.zeros(1, dtype=torch.long)])),
            (np.arange(999), np.array([*range(998), 0])),
            ("x" * 999, "x" * 998 + "y"),
            (tuple(range(999)), (*range(998), 0)),
            ({"a": 1}, collections.OrderedDict(a=1)),
            (collections.deque([1]), collections.deque([1], 1)),
            ([1], collections.deque([1])),
            (torch.ones(1), nn.Parameter(torch.ones(1))),
            (range(9), "range(0, 9)"),
        ],
    )
    def test_values_that_differ_never_read_alike(self, one: object, two: object) -> None:
        """One changed element of many, another class, another bound: the two texts differ."""
        suspects = difference(walk(Holder(a=one)).snapshot, walk(Holder(a=two)).snapshot).suspects

        assert suspects
        assert all(suspect.first != suspect.second for suspect in suspects)

    def test_the_kind_of_a_container_is_told_where_it_differs(self) -> None:
        """A deque with its bound against a list; one sort of dict against another."""
        one = Holder(a=collections.deque([1], 4), b=collections.OrderedDict(x=1))
        two = Holder(a=[1], b=collections.defaultdict(int, x=1))

        told = {
            suspect.path: (suspect.first, suspect.second)
            for suspect in difference(walk(one).snapshot, walk(two).snapshot).suspects
        }

        assert told == {
            "value.a": ("deque([1], maxlen=4)", "[1]"),
            "value.b": ("OrderedDict {'x'}", "defaultdict {'x'}"),
        }


class Decaying:
    """A schedule by its class, whatever it is called."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.inner = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        self.notes = {"seen": 0}


def test_a_suspect_knows_the_class_of_what_holds_it() -> None:
    """The nearest object that is no container of Python's own is told, with the classes that it is derived from."""
    one, two = (Decaying(torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)) for _ in range(2))
    two.inner.last_epoch, two.notes["seen"] = 5, 5
    one.inner.base_lrs, two.inner.base_lrs = [0.1], [0.2]

    found = difference(Walk().of_value(one).snapshot, Walk().of_value(two).snapshot).suspects

    holders = {suspect.path: suspect.holder for suspect in found}
    assert holders["value.inner.last_epoch"][0] == holders["value.inner.base_lrs"][0]
    assert holders["value.inner.last_epoch"][:2] == (
        "torch.optim.lr_scheduler.StepLR", "torch.optim.lr_scheduler.LRScheduler",
    )  # fmt: skip
    assert holders["value.notes.seen"][0].endswith("Decaying")
