"""How the engine's parts are compiled, and where the machine code is kept.

All machine code is kept in one folder named after the contents of the whole engine: change any part and it is compiled
anew.

Parts have no wrappers for calls from Python: each wrapper would unpack every array of the world, and the engine
compiles several times faster without. Small parts that run for every event are inlined, since handing the arrays on
costs more than the work. References are not counted (`_nrt`): the caller keeps every array alive, compiled code
allocates none, and counting would take most of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from gputwin.core.machine_code import code_folder, config, kept_in
from gputwin.simulation.engine.parts import EntryCompiler, PartCache, PartCompiler

F = TypeVar("F", bound=Callable[..., Any])
# Numba's stubs do not know the option `_nrt`.
njit: Any = numba.njit
_PART = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False, "pipeline_class": PartCompiler}
_ENTRY = {"cache": True, "_nrt": False, "pipeline_class": EntryCompiler}
_EFFORT: dict[str, Any] = {"OPT": type(config.OPT)(2), "LOOP_VECTORIZE": 0, "SLP_VECTORIZE": 0}
"""Of LLVM: more makes the engine no faster, and compiling it takes more than twice as long."""


@cache
def cache_folder() -> str:
    """Return the folder for this engine's machine code."""
    return code_folder("engine", sorted(Path(__file__).parent.rglob("*.py")))


def is_compiled() -> bool:
    """Return whether the event loop is in the cache, so that a run starts at once."""
    return any(Path(cache_folder()).glob("*/loop.run-*.nbi"))


def _cached_here() -> AbstractContextManager[None]:
    """Let what is compiled inside keep its code in our folder; Numba asks for the folder when it decorates."""
    return kept_in(cache_folder(), **_EFFORT)


def compiled(function: F) -> F:
    """Return `function` compiled on first use from compiled code."""
    return _part(function)


def inlined(function: F) -> F:
    """Return `function` compiled into each of its callers."""
    return _part(function, forceinline=True)


def _part(function: F, **options: Any) -> F:
    with _cached_here():
        result = njit(**_PART, **options)(function)
        if not config.DISABLE_JIT:
            result._cache = PartCache(function)
    return cast(F, result)


def compiled_as(function: F, signature: Any) -> F:
    """Return `function` compiled now for one signature, callable from Python and passable as a value."""
    with _cached_here():
        result: F = njit(signature, **_ENTRY)(function)
    return result


def vectorized(signature: str) -> Callable[[F], F]:
    """Return a decorator that compiles a function now for one signature, its loops for several numbers at a time."""

    def compile_now(function: F) -> F:
        with _cached_here():
            config.LOOP_VECTORIZE = type(config.LOOP_VECTORIZE)(1)
            result: F = njit(signature, **_ENTRY)(function)
        return result

    return compile_now


def only_version(function: Any) -> Any:
    """Return what `compiled_as` made, with its entry point."""
    (version,) = function.overloads.values()
    return version
