"""What a policy's source says before it is compiled: what it must not do, and the name its machine code is kept under.

Numba keeps machine code by the file of the function it compiles, not by those of the functions called from it. So a
policy's code is kept under a name with a digest of all sources it is made of: change a helper and it is compiled anew.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from gputwin.core.errors import UserError, shorten

OURS = "gputwin."
HIDDEN = {"duration": "predicted", "end": "believed_end"}
"""Fields of a job that no scheduler knows, and what it knows instead."""
_MUTATORS = {"fill", "itemset", "partition", "put", "resize", "setfield", "setflags", "sort"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLAIN = (bool, int, float, str, bytes, tuple, frozenset)


def checked(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, its machine code named after all its sources.

    `what` is the policy it belongs to, as in "order 'mine'". One of somebody else's that writes to what it is given, or
    reads what no scheduler knows, is a user error with its line.
    """
    if isinstance(function, FunctionType):
        for part in _parts(function):
            if not is_ours(part):
                _check(what, part)
    return named(function)


def named(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, its machine code named after all its sources."""
    if isinstance(function, FunctionType):
        _rename(function)
    return function


def reads(function: Callable[..., Any], field: str) -> bool:
    """Return whether the function, or one it calls, reads a field of this name."""
    plain = _python_of(function)
    return plain is not None and any(field in _names(part.__code__) for part in _parts(plain))


@cache
def _rename(function: FunctionType) -> None:
    """Put a digest of its sources into the function's qualified name, by which Numba names its cache."""
    digest = hashlib.sha256()
    for part in _parts(function):
        digest.update(_source(part).encode())
        for name, value in sorted(_constants(part).items()):
            digest.update(f"{name}={value!r};".encode())
    function.__qualname__ = f"{function.__qualname__}_{digest.hexdigest()[:12]}"


def raise_if_not_ours(functions: Iterable[Callable[..., Any]], error: Exception) -> None:
    """Raise the compiler's error in one line where one of the functions is somebody else's."""
    theirs = [f for f in functions if isinstance(f, FunctionType) and not is_ours(f)]
    if theirs:
        said = [line.strip() for line in _COLOUR.sub("", str(error)).splitlines() if line.strip()]
        files = ", ".join(dict.fromkeys(Path(f.__code__.co_filename).name for f in theirs))
        raise UserError(
            f"{files}: the policy does not compile: {shorten(' '.join(said[:3]), 300)}; see docs/own-policy.md"
        ) from None


def is_ours(function: Callable[..., Any]) -> bool:
    """Return whether a function is gputwin's own."""
    return function.__module__.startswith(OURS)


def _source(function: FunctionType) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise UserError(f"the source of '{function.__name__}' cannot be read; put the policy into a file") from None


@cache
def _parts(function: FunctionType) -> tuple[FunctionType, ...]:
    """Return the function and all it calls, directly or not, that is written in Python."""
    found: dict[FunctionType, None] = {}
    left = [function]
    while left:
        part = left.pop()
        if part not in found:
            found[part] = None
            left += [f for value in _referred(part).values() if (f := _python_of(value)) is not None]
    return tuple(found)


def _python_of(value: Any) -> FunctionType | None:
    """Return the Python function behind a function or a compiled one; libraries are not looked into."""
    plain = getattr(value, "py_func", value)
    if not isinstance(plain, FunctionType) or plain.__module__.split(".")[0] in ("numba", "numpy", "math", "builtins"):
        return None
    return plain


def _referred(function: FunctionType) -> dict[str, Any]:
    """Return what the names in a function stand for, those of modules looked up one step further."""
    names = set(_names(function.__code__))
    known = {name: function.__globals__[name] for name in names if name in function.__globals__}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    known |= {name: cell.cell_contents for name, cell in cells}
    for module in [value for value in known.values() if isinstance(value, ModuleType)]:
        if module.__name__.split(".")[0] not in ("numba", "numpy", "math"):
            known |= {f"{module.__name__}.{n}": getattr(module, n) for n in names if hasattr(module, n)}
    return known


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _constants(function: FunctionType) -> dict[str, Any]:
    return {name: value for name, value in _referred(function).items() if isinstance(value, _PLAIN)}


def _check(what: str, function: FunctionType) -> None:
    tree = ast.parse(_source(function))
    (definition,) = (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function.__name__
    )
    first = function.__code__.co_firstlineno
    for line, problem in _Reading(definition).problems():
        file = Path(function.__code__.co_filename).name
        raise UserError(f"{what} ({file}, line {first + line - 1}): {problem}")


class _Reading:
    """A function read for what it does with its arguments, and with names that stand for parts of them."""

    def __init__(self, definition: ast.FunctionDef) -> None:
        self.definition = definition
        arguments = definition.args
        self.given = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        for node in ast.walk(definition):
            match node:
                case ast.Assign(targets=targets, value=value) if self._of_given(value):
                    self.given |= {t.id for t in targets if isinstance(t, ast.Name)}
                case ast.NamedExpr(target=ast.Name(id=name), value=value) if self._of_given(value):
                    self.given.add(name)
                case ast.For(target=ast.Name(id=name), iter=value) if self._of_given(value):
                    self.given.add(name)

    def problems(self) -> Iterator[tuple[int, str]]:
        """Yield line and words of all that a policy must not do."""
        for node in ast.walk(self.definition):
            match node:
                case ast.Global() | ast.Nonlocal():
                    yield node.lineno, f"keeps '{node.names[0]}' between calls; a policy may only use what it is given"
                case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                    if self._of_given(node):
                        yield node.lineno, f"writes to {ast.unparse(node)}; a policy may only read what it is given"
                case ast.Call(func=ast.Attribute(attr=name) as called) if name in _MUTATORS and self._of_given(called):
                    yield node.lineno, f"changes {ast.unparse(called.value)}; a policy may only read what it is given"
                case ast.Attribute(attr=name, ctx=ast.Load()) if name in HIDDEN and self._of_given(node):
                    yield (
                        node.lineno,
                        f"reads {ast.unparse(node)}, which no scheduler knows; read {HIDDEN[name]} instead",
                    )

    def _of_given(self, node: ast.expr) -> bool:
        """Return whether an expression is an argument or a part of one."""
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.given
