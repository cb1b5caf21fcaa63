"""Suspended functions: where they stand, their variables, and the iterators of the loops they are in."""

from __future__ import annotations

import ast
import ctypes
import gc
import linecache
import sys
import types
from functools import cache
from typing import Any

from resume_audit.graph.types import is_a


def frame_of(generator: Any) -> types.FrameType | None:
    """The frame of a generator or coroutine; None after its end."""
    frame: types.FrameType | None = generator.gi_frame if is_a(generator, types.GeneratorType) else generator.cr_frame
    return frame


def code_of(generator: Any) -> types.CodeType:
    """The code of a generator or coroutine."""
    code: types.CodeType = generator.gi_code if is_a(generator, types.GeneratorType) else generator.cr_code
    return code


def state_of(generator: Any) -> str:
    """`finished`, `running`, `not started` or `suspended`."""
    frame = frame_of(generator)
    if frame is None:
        return "finished"
    if generator.gi_running if is_a(generator, types.GeneratorType) else generator.cr_running:
        return "running"
    started = generator.gi_suspended if is_a(generator, types.GeneratorType) else generator.cr_suspended
    return "suspended" if started else "not started"


def variables(generator: Any) -> tuple[dict[str, Any], dict[str, types.CellType], list[Any]]:
    """The plain variables of a suspended function, its cells, and what lies on its evaluation stack, outermost first.

    The stack is seen through the interpreter's own list of what a generator refers to; its end is the stack.
    """
    frame = frame_of(generator)
    if frame is None:
        return {}, {}, []
    code = frame.f_code
    values = dict(frame.f_locals)
    if sys.version_info < (3, 13) and state_of(generator) != "running":
        frame.f_locals.clear()  # the interpreter's copy of them would keep what they name alive
    held = gc.get_referents(generator)
    cell_names = code.co_cellvars + code.co_freevars
    found = [item for item in held if type(item) is types.CellType]
    cells = dict(zip(cell_names, found, strict=True)) if len(found) == len(cell_names) else {}
    plain = {name: value for name, value in values.items() if name not in cell_names}
    stack: list[Any] = []
    if state_of(generator) in ("suspended", "running"):
        stack = _stack(held, plain, cells, found)
    return plain, cells, stack


def _stack(held: list[Any], plain: dict[str, Any], cells: dict[str, Any], found: list[Any]) -> list[Any]:
    """What a generator refers to after its code, less its variables and cells: the evaluation stack."""
    start = max((i for i, item in enumerate(held) if type(item) is types.CodeType), default=-1) + 1
    if found and cells:
        last = max(i for i, item in enumerate(held) if type(item) is types.CellType)
        return held[last + 1 :]
    return held[start + len(plain) :]


def set_variable(generator: Any, name: str, value: Any) -> bool:
    """Give a suspended function's variable another value. Whether that is possible here."""
    frame = frame_of(generator)
    if frame is None:
        return False
    frame.f_locals[name] = value
    if sys.version_info < (3, 13):
        # In a trace function the interpreter copies the variables back by itself; elsewhere it has to be asked.
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    return True


def replace_on_stack(generator: Any, old: Any, new: Any) -> bool:
    """Put another object where a suspended function keeps `old` on its evaluation stack. Whether it was there.

    The interpreter gives no way to do that, so the memory of the generator is searched for the one reference.
    This is for a process that exists to try it out.
    """
    if sys.implementation.name != "cpython":
        return False
    word = ctypes.sizeof(ctypes.c_void_p)
    words = (ctypes.c_void_p * (sys.getsizeof(generator) // word)).from_address(id(generator))
    for i in range(len(words) - 1, -1, -1):
        if words[i] == id(old):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(new))
            words[i] = id(new)
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(old))
            return True
    return False


def position(generator: Any) -> tuple[str, int]:
    """State and instruction at which a suspended function stands."""
    frame = frame_of(generator)
    state = state_of(generator)
    return ("finished", -1) if frame is None else (state, frame.f_lasti if state != "not started" else -1)


def loops_at(code: types.CodeType, line: int) -> list[str]:
    """The expressions that the `for` loops around a line run over, outermost first."""
    tree = _tree(code.co_filename)
    if tree is None:
        return []
    inside = _function(tree, code)
    found = [
        node for node in ast.walk(inside)
        if isinstance(node, (ast.For, ast.AsyncFor)) and node.lineno <= line <= (node.end_lineno or node.lineno)
        and not (node.orelse and line >= node.orelse[0].lineno)
    ]  # fmt: skip
    return [ast.unparse(node.iter) for node in sorted(found, key=lambda node: node.lineno)]


def delegated_at(code: types.CodeType, line: int) -> str:
    """The expression that a `yield from` on a line runs over."""
    tree = _tree(code.co_filename)
    nodes = ast.walk(_function(tree, code)) if tree is not None else iter(())
    found = [
        node
        for node in nodes
        if isinstance(node, (ast.YieldFrom, ast.Await)) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return ast.unparse(found[0].value) if found else ""


def source_line(code: types.CodeType, line: int) -> str:
    return linecache.getline(code.co_filename, line).strip()


def _function(tree: ast.AST, code: types.CodeType) -> ast.AST:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", []))])
            if first == code.co_firstlineno and getattr(node, "name", "<lambda>") == code.co_name:
                return node
    return ast.Module([], [])


@cache
def _tree(file: str) -> ast.AST | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
