"""Policies in a user's own Python file."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path

from gputwin.core.errors import UserError
from gputwin.simulation.policy import BACKFILLS


def load_policies(path: Path) -> None:
    """Run a user's Python file, once, so that the policies in it register themselves."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; --policies takes a Python file")
    # The same file has the same name in every process, and another one once it is changed.
    name = f"gputwin_policies_{path.stem}_{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path}: not a Python file; --policies takes one")
    module = importlib.util.module_from_spec(spec)
    # Compiled policies are looked up by their module's name when cached code is loaded.
    sys.modules[name] = module
    BACKFILLS.names()
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, UserError):
            raise UserError(f"{path}: {error}") from None
        if isinstance(error, Exception):
            raise UserError(f"{path}: {type(error).__name__}: {error}") from error
        raise
