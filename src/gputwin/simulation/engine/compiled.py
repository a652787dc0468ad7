"""How the engine's parts are compiled: for each other's use only.

Without wrappers for calls from Python the whole engine compiles several times faster, since each wrapper would unpack
every array of the world.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Return `function` compiled on first use from compiled code, cached on disk."""
    result: F = njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return result
