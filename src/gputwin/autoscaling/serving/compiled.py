"""How the serving simulator is compiled, and where its machine code is kept.

All machine code is kept in one folder named after the contents of the files it comes from: change any and it is
compiled anew.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

from gputwin.core.machine_code import code_folder, kept_in

F = TypeVar("F", bound=Callable[..., Any])
# Numba's stubs do not know the option `_nrt`.
_njit: Any = numba.njit
_SOURCES = ("arrivals", "compiled", "events", "queue", "replicas", "slots", "tokens", "world")
"""Files that compiled code comes from."""
_INTERNAL = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@cache
def cache_folder() -> str:
    """Return the folder for this package's machine code."""
    return code_folder("serving", [Path(__file__).with_name(f"{name}.py") for name in _SOURCES])


def compiled(function: F) -> F:
    """Return `function` compiled for calls from compiled code; the caller keeps every array alive."""
    return _compile(function, **_INTERNAL)


def entry(function: F) -> F:
    """Return `function` compiled for calls from Python."""
    return _compile(function)


def _compile(function: F, **options: Any) -> F:
    # Numba asks for the folder when it decorates.
    with kept_in(cache_folder()):
        result: F = _njit(cache=True, _nrt=False, **options)(function)
    return result
