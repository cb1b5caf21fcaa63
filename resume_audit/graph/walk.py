"""The walk over everything that a job can reach: breadth first, without recursion, each object once."""

from __future__ import annotations

import hashlib
import sys
import types
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from resume_audit.graph import frames
from resume_audit.graph.contents import storage_of
from resume_audit.graph.leaves import base_names, leaf, type_name
from resume_audit.graph.modules import data_of, is_data, is_the_jobs, mentioned, modules_used
from resume_audit.graph.nodes import Label, Leaf, Node, Part, Snapshot
from resume_audit.graph.opened import Opened, attributes
from resume_audit.graph.parts import CachedFunction, open_object
from resume_audit.graph.paths import join, snake
from resume_audit.graph.settings import SETTINGS
from resume_audit.graph.types import is_a
from resume_audit.job import Attributes, Generator, Gradients, Job, Rng

PROCESS_GENERATORS = ("rng[torch.default_generator]", "rng[numpy.random]", "rng[random]")


@dataclass
class Namespace:
    """The globals of a module as a holder: the same one, whichever function reaches them."""

    namespace: dict[str, Any]


class Walk:
    """A finished walk: the snapshot, and beside it the live objects, number by number.

    contents: read the contents of tensors and arrays too; without them the nodes are the same, and the walk quick.
    """

    def __init__(self, *, contents: bool = True) -> None:
        self.nodes: list[Node] = []
        self.objects: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.storages: dict[int, int] = {}
        self.namespaces: dict[str, int] = {}
        self.names: dict[int, dict[str, str]] = {}
        self.mentions: set[str] = set()
        self.parameter_lists: set[int] = set()
        self.package = ""
        self.waiting: deque[int] = deque()
        self.lists: deque[int] = deque()
        self.later: deque[int] = deque()
        self.find_globals = True
        self.contents = contents

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(self.nodes)

    def of_job(self, job: Job, module: str, running: Sequence[tuple[str, Any]] = ()) -> Walk:
        """Walk from the components, the functions of the job, its module's globals and the process's generators.

        running: generators in the middle of whose run the walk is made, by path: from outside they are closed.
        """
        self.package = module
        roots: list[tuple[Label, Any]] = []
        adapted: list[tuple[Label, Any]] = []
        for name, component in job.components.items():
            if type(component) is Attributes:
                known = self.names.setdefault(id(component.target), {})
                known.update({attribute: f"{name}.{attribute}" for attribute in component.names})
                adapted.append((Label("adapted", name), component.target))
            elif type(component) is Gradients:
                adapted.append((Label("adapted", name), component.model))
            elif type(component) is Generator:
                roots.append((Label("root", name), component.generator))
            elif type(component) is not Rng:
                roots.append((Label("root", name), component))
        for name in ("step", "save", "load"):
            function = getattr(job, name)
            if function is not None:
                roots.append((Label("root", name), function))
        roots.append((Label("root", PROCESS_GENERATORS[0]), torch.default_generator))
        roots.append((Label("root", PROCESS_GENERATORS[1]), np.random.mtrand._rand))
        roots.append((Label("root", PROCESS_GENERATORS[2]), sys.modules["random"]._inst))
        roots += [(Label("setting", name), read()) for name, (read, _) in SETTINGS.items()]
        roots += [(Label("root", name), hooks) for name, hooks in library_hooks().items()]
        roots += [(Label("root", path), generator) for path, generator in running]
        self._start(roots, module)
        for label, target in adapted:  # last: what only adapts an object does not name the rest of it
            self._hold(0, label, target)
        self._open_all()
        return self

    def of_value(self, value: Any) -> Walk:
        """Walk from one value alone, without modules."""
        self.find_globals = False
        self._start([(Label("root", "value"), value)], "")
        return self

    def _start(self, roots: list[tuple[Label, Any]], module: str) -> None:
        self.nodes.append(Node("roots", "", ""))
        self.objects.append(None)
        for label, value in roots:
            self._hold(0, label, value)
        if module and self.find_globals:
            self._module(module)
        self._open_all()

    def _open_all(self) -> None:
        while queue := self.waiting or self.lists or self.later:
            self._open(queue.popleft())

    def _hold(self, holder: int, label: Label, value: Any) -> None:
        """Write down that `holder` holds `value` at `label`, and see to it that the value is opened."""
        target: int | Leaf | None = leaf(value)
        if target is None:
            target = self._number(holder, label, value)
        self.nodes[holder].parts.append(Part(label, target))
        if not self.find_globals:
            return
        if type(value) is type and is_the_jobs(value.__module__, self.package):
            self._class(value)
        elif type(value) is types.ModuleType:
            self._module(value.__name__, frozenset(self.mentions))

    def _number(self, holder: int, label: Label, value: Any) -> int:
        number = self.numbers.get(id(value))
        if number is None:
            number = len(self.nodes)
            self.numbers[id(value)] = number
            path = self._path(holder, label, value)
            node = Node("", type_name(type(value)), path, holder=(holder, label), place=self._place(holder, label))
            node.names, node.bases = self.names.get(id(value), {}), base_names(type(value))
            self.nodes.append(node)
            self.objects.append(value)
            self.waiting.append(number)
        return number

    def _place(self, holder: int, label: Label) -> bytes:
        key = self.nodes[label.node].place if label.node is not None else b""
        way = f"{label.kind}|{type(label.name).__name__}|{label.name!r}|".encode(errors="surrogatepass")
        return hashlib.blake2b(self.nodes[holder].place + way + key, digest_size=16).digest()

    def _path(self, holder: int, label: Label, value: Any) -> str:
        if label.kind == "self":
            if not is_the_jobs(type(value).__module__, self.package):
                return f"{self.nodes[holder].path}.__self__"
            label = Label("self", snake(type(value).__name__))
        if label.kind == "adapted":
            return snake(type(value).__name__)
        return path_of(self.nodes, holder, label)

    def _open(self, number: int) -> None:
        value, node = self.objects[number], self.nodes[number]
        if type(value) is Namespace:
            node.kind, node.shown = "namespace", "a module's globals"
            return
        if is_a(value, type):
            self._open_class(number, value)
            return
        if id(value) in self.parameter_lists and self.waiting:
            self.lists.append(number)  # its tensors may yet be met where they have a name of their own
            return
        if is_a(value, torch.optim.Optimizer):
            self.parameter_lists |= _parameter_lists(value)
        opened = self._opened(value)
        addresses = {label.name for label, _ in opened.parts if _is_address(label)}
        strangers = {id(key) for key in opened.keys.values()} | addresses
        if (self.waiting or self.lists) and not strangers <= self.numbers.keys():
            self.later.append(number)  # its keys may yet be met likewise
            return
        node.kind, node.content, node.shown = opened.kind, opened.content, opened.shown
        node.why, node.order = opened.why, opened.order
        if node.kind == "tensor":
            node.storage = self._storage(value)
        for position, (label, part) in enumerate(opened.parts):
            place = label
            if _is_address(label) and label.name in self.numbers:
                place = Label("key", "id", self.numbers[label.name])
            if position in opened.keys:
                key = opened.keys[position]
                place = Label("key", "", self._number(number, Label("index", position), key))
            self._hold(number, place, part)
        if self.find_globals:
            self._code_of(value)

    def _opened(self, value: Any) -> Opened:
        try:
            return open_object(value, contents=self.contents)
        except Exception as error:  # noqa: BLE001 -- an object that cannot be opened is named, and the walk goes on
            return Opened("closed", why=f"opening it failed ({type(error).__name__})")

    def _storage(self, tensor: torch.Tensor) -> tuple[int, int, tuple[int, ...]] | None:
        found = storage_of(tensor)
        if found is None:
            return None
        address, offset, stride = found
        return self.storages.setdefault(address, len(self.storages)), offset, stride

    def _code_of(self, value: Any) -> None:
        """See to the globals of the module that a function or the class of an object comes from."""
        if type(value) is types.FunctionType:
            self._module(value.__module__ or "")
        elif is_a(value, types.GeneratorType):
            frame = frames.frame_of(value)
            if frame is not None:
                self._module(frame.f_globals.get("__name__", ""))
        else:
            for base in type(value).__mro__:
                if is_the_jobs(base.__module__, self.package):
                    self._class(base)
                    self._module(base.__module__)

    def _class(self, kind: type) -> None:
        """The data that a class of the job's holds for all its instances."""
        if id(kind) in self.numbers or not any(map(is_data, *zip(*vars(kind).items(), strict=True))):
            return
        label = Label("class", kind.__name__)
        self.nodes[0].parts.append(Part(label, self._number(0, label, kind)))

    def _open_class(self, number: int, kind: type) -> None:
        self.nodes[number].kind = "class"
        for name, value in vars(kind).items():
            if is_data(name, value):
                self._hold(number, Label("attr", name), value)

    def _module(self, name: str, mentions: frozenset[str] = frozenset()) -> None:
        """The globals of a module of the job's that its functions use, or that those of another use through it."""
        module = sys.modules.get(name)
        if module is None or not is_the_jobs(name, self.package):
            return
        namespace = vars(module)
        number = self.namespaces.get(name)
        if number is None:
            own = mentioned(namespace, name)
            self.mentions |= own
            label = Label("namespace", name)
            number = self.namespaces[name] = self._number(0, label, Namespace(namespace))
            self.nodes[0].parts.append(Part(label, number))
            self.nodes[number].names = dict(self.names.get(id(module), {}))
            for global_name in data_of(namespace, own):
                self._hold(number, Label("global", global_name), namespace[global_name])
            for other in modules_used(namespace, own):
                self._module(other.__name__, own)
            for global_name, value in list(namespace.items()):
                self._code(number, name, global_name, value)
        held = {part.label.name for part in self.nodes[number].parts}
        for global_name in data_of(namespace, mentions):
            if global_name not in held:
                self.nodes[number].names[global_name] = f"{name.rpartition('.')[2]}.{global_name}"
                self._hold(number, Label("global", global_name), namespace[global_name])

    def _code(self, number: int, module: str, name: str, value: Any) -> None:
        """What the functions and classes of a module keep between calls."""
        if is_a(value, type) and value.__module__ == module:
            self._class(value)
        elif type(value) is CachedFunction or (
            is_a(value, types.FunctionType) and value.__module__ == module and _has_state(value)
        ):
            self._hold(number, Label("global", name), value)


def _is_address(label: Label) -> bool:
    """Whether a part is kept under what may be the `id` of an object."""
    return label.kind == "key" and type(label.name) is int and label.name > 1 << 32


def _has_state(function: types.FunctionType) -> bool:
    """Whether a function keeps something between calls: attributes, or defaults that can change."""
    values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return bool(function.__dict__) or any(leaf(value) is None for value in values)


def _parameter_lists(optimizer: torch.optim.Optimizer) -> set[int]:
    """The lists in which an optimizer keeps its parameters, by identity."""
    groups = attributes(optimizer).get("param_groups")
    return {id(group.get("params")) for group in groups if type(group) is dict} if type(groups) is list else set()


def library_hooks() -> dict[str, Any]:
    """Where torch keeps the hooks that are registered for all modules and all optimizers."""
    return {
        f"{place}.{name}": value
        for place in (torch.nn.Module.__module__, torch.optim.Optimizer.__module__)
        for name, value in vars(sys.modules[place]).items()
        if name.startswith("_global_") and name.endswith("hooks") and is_a(value, dict)
    }


def path_of(nodes: list[Node], holder: int, label: Label) -> str:
    """The path of what lies at `label` in node `holder`."""
    key_path = nodes[label.node].path if label.node is not None else None
    if label.kind in ("attr", "slot", "global") and label.name in nodes[holder].names:
        return nodes[holder].names[label.name]
    return join(nodes[holder].path, label, key_path)
