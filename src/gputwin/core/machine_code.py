"""Where compiled code is kept between runs: in a folder named after the contents of everything it comes from.

Numba's cache looks only at the file of the function it compiles, not at those of the functions called from it. So each
part of gputwin that compiles has a folder of its own, named after all its sources: change any and it is compiled anew.
Within it, code is found by the contents of its file and not by where the file lies, so that a second installation of
the same version, or a fresh clone, compiles nothing again.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import UserProvidedCacheLocator


def _load_without_blas() -> None:
    """Load Numba's array functions without scipy, which takes a third of a second at every start.

    They only ask whether BLAS is there, to speed up convolutions in compiled code, and gputwin compiles none.
    """
    blas = "scipy.linalg.cython_blas"
    if blas in sys.modules or "numba.np.arraymath" in sys.modules:
        return
    # An import of a module that is None fails, which is what Numba takes for "not installed".
    sys.modules[blas] = None  # type: ignore[assignment]
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        del sys.modules[blas]


_load_without_blas()
# Numba's stubs do not know the fields of its configuration.
config: Any = numba.config
_Numbas: Any = UserProvidedCacheLocator
_PACKAGE = Path(__file__).parents[1]


def code_folder(part: str, sources: Iterable[Path]) -> str:
    """Return the folder for the machine code of `sources`: below $GPUTWIN_CACHE, or the user's cache folder."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sources:
        digest.update(source.read_bytes())
    home = os.environ.get("GPUTWIN_CACHE") or Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gputwin"
    folder = Path(home) / f"{part}-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"gputwin-{os.getuid()}" / folder.name
        folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


class ByContents(_Numbas):  # type: ignore[misc]
    """Finds the code of a file of this package by its place in the package and its contents."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Return the folder below the cache for code of this file; Numba's own for a file outside the package."""
        return _subpath(py_file) or str(super().get_suitable_cache_subpath(py_file))

    def ensure_cache_path(self) -> None:
        """Make the folder; Numba's own way also writes a file there, for each of hundreds of functions at every start."""
        _make(self.get_cache_path())


@cache
def _subpath(py_file: str) -> str:
    """Return the folder for code of a file of this package; nothing for a file outside."""
    path = Path(py_file).resolve()
    if not path.is_relative_to(_PACKAGE):
        return ""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    return f"{'_'.join(path.relative_to(_PACKAGE).parent.parts[-2:])}_{path.stem}_{digest}"


@cache
def _make(folder: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)


@contextmanager
def kept_in(folder: str, **settings: Any) -> Iterator[None]:
    """Let what is decorated inside keep its code in `folder`, with these settings of Numba's configuration."""
    wanted = {"CACHE_DIR": folder, "CACHE_LOCATOR_CLASSES": f"{__name__}.{ByContents.__name__}", **settings}
    before = {name: getattr(config, name) for name in wanted}
    for name, value in wanted.items():
        setattr(config, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)
