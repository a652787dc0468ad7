"""How the serving simulator is compiled, and where its machine code is kept.

Numba's cache looks only at the file of the function it compiles. All machine code is therefore kept in a folder named
after the contents of all files it comes from: change any and it is compiled anew.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])
# Numba's stubs know neither the option `_nrt` nor the fields of its configuration.
_njit: Any = numba.njit
_config: Any = numba.config
_SOURCES = ("arrivals", "compiled", "events", "queue", "replicas", "slots", "tokens", "world")
"""Files that compiled code comes from."""
_INTERNAL = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@cache
def cache_folder() -> str:
    """Return the folder for this package's machine code: below $GPUTWIN_CACHE, or the user's cache folder."""
    digest = hashlib.sha256(numba.__version__.encode())
    for name in _SOURCES:
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    home = os.environ.get("GPUTWIN_CACHE") or Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gputwin"
    folder = Path(home) / f"serving-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"gputwin-{os.getuid()}" / folder.name
        folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def compiled(function: F) -> F:
    """Return `function` compiled for calls from compiled code; the caller keeps every array alive."""
    return _compile(function, **_INTERNAL)


def entry(function: F) -> F:
    """Return `function` compiled for calls from Python."""
    return _compile(function)


def _compile(function: F, **options: Any) -> F:
    before = _config.CACHE_DIR
    # Numba asks for the folder when it decorates.
    _config.CACHE_DIR = cache_folder()
    try:
        result: F = _njit(cache=True, _nrt=False, **options)(function)
    finally:
        _config.CACHE_DIR = before
    return result
