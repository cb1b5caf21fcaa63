"""Where an uninterrupted and a resumed run come to the same instruction of a function that was suspended.

The uninterrupted run goes on in the middle of a generator function; the resumed run starts it from the top.
Both are followed, instruction by instruction, through that one function; the first instruction that both
reach is where they can be compared, and where the resumed run can be given what the uninterrupted one has.
"""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from resume_audit.graph import frames
from resume_audit.graph.types import is_a
from resume_audit.graph.walk import Walk

LONGEST = 200_000
"""Instructions followed at most."""


@dataclass(frozen=True)
class Function:
    """A generator function, as both processes know it, and the path at which it was found suspended."""

    path: str
    file: str
    name: str
    line: int

    @classmethod
    def of(cls, path: str, code: types.CodeType) -> Function:
        return cls(path, code.co_filename, code.co_qualname, code.co_firstlineno)

    def runs(self, code: types.CodeType) -> bool:
        return (code.co_filename, code.co_qualname, code.co_firstlineno) == (self.file, self.name, self.line)


@dataclass(frozen=True)
class Meeting:
    """An instruction of a function, by its offset in the code."""

    function: Function
    instruction: int


def suspended(walk: Walk, numbers: list[int]) -> list[Function]:
    """The functions that are suspended among some nodes of a walk, outermost first."""
    found = []
    for number in numbers:
        node, live = walk.nodes[number], walk.objects[number]
        if node.kind == "generator" and frames.state_of(live) == "suspended":
            found.append(Function.of(node.path, frames.code_of(live)))
    return found


def live_generator(walk: Walk, function: Function) -> Any:
    """The generator of a walk that is suspended at the path of `function`."""
    for node, live in zip(walk.nodes, walk.objects, strict=True):
        if node.path == function.path and node.kind == "generator" and function.runs(frames.code_of(live)):
            return live
    return None


@dataclass
class Pause:
    """What is to be done, with its generator, when a run (of `generator` alone, where given) comes to a meeting."""

    meeting: Meeting
    then: Callable[[Any], None]
    generator: Any = None


def advance(act: Callable[[], Any], pauses: Sequence[Pause]) -> tuple[Any, int]:
    """Do `act`, pausing at one meeting after the other. What `act` returns, and how many meetings it came to.

    An exception of what is done at a pause is raised after `act` has ended.
    """
    steps = _Tracer(pauses)
    with steps:
        result = act()
    if steps.raised:
        raise steps.raised[0]
    return result, steps.reached


def follow(function: Function, act: Callable[[], Any], pauses: Sequence[Pause], generator: Any = None) -> list[int]:
    """Do `act` and return the instructions that `function` runs, once all pauses are behind, until it first yields."""
    with _Tracer(pauses, function, generator) as steps:
        act()
    return steps.followed


class _Tracer:
    """Within the block, the interpreter tells every instruction of the functions concerned, and of no other."""

    def __init__(self, pauses: Sequence[Pause], function: Function | None = None, generator: Any = None) -> None:
        self.pauses, self.function = list(pauses), function
        self.reached = 0
        self.followed: list[int] = []
        self.raised: list[Exception] = []
        self.ended = False
        generators = [pause.generator for pause in pauses] + [generator]
        functions = [pause.meeting.function for pause in pauses] + ([function] if function else [])
        self.frames = [
            (wanted, None if of is None else frames.frame_of(of))
            for wanted, of in zip(functions, generators, strict=False)
        ]

    def __enter__(self) -> Self:
        self.before = sys.gettrace()
        sys.settrace(self.on_call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)
        self.frames.clear()

    def on_call(self, frame: types.FrameType, _: str, __: Any) -> Any:
        for i in range(min(self.reached, len(self.frames)), len(self.frames)):
            function, wanted = self.frames[i]
            if function.runs(frame.f_code) and wanted in (None, frame):
                self.frames[i] = function, frame  # from now on this call of the function and no other
                frame.f_trace_opcodes, frame.f_trace_lines = True, False
                return self.on_instruction
        return None

    def on_instruction(self, frame: types.FrameType, event: str, _: Any) -> Any:
        if self.reached < len(self.pauses):
            pause = self.pauses[self.reached]
            if (
                event == "opcode"
                and frame is self.frames[self.reached][1]
                and frame.f_lasti == pause.meeting.instruction
            ):
                self.reached += 1
                try:
                    pause.then(_owner(frame))
                except Exception as error:  # noqa: BLE001 -- nothing may be raised into the job's own code
                    self.raised.append(error)
        elif self.function is not None and frame is self.frames[-1][1] and not self.ended:
            if event == "opcode" and len(self.followed) < LONGEST:
                self.followed.append(frame.f_lasti)
            self.ended = event == "return"
        return self.on_instruction


def _owner(frame: types.FrameType) -> Any:
    """The generator or coroutine that a frame is the frame of."""
    kinds = (types.GeneratorType, types.CoroutineType)
    return next(
        (owner for owner in gc.get_referrers(frame) if is_a(owner, kinds) and frames.frame_of(owner) is frame), None
    )


def meetings(function: Function, ours: list[int], theirs: list[int]) -> list[Meeting]:
    """Where both come: first in the order of the resumed run, then in that of the uninterrupted one."""
    mine, other = set(ours), set(theirs)
    firsts = [next((i for i in theirs if i in mine), None), next((i for i in ours if i in other), None)]
    return [Meeting(function, i) for i in dict.fromkeys(firsts) if i is not None]
