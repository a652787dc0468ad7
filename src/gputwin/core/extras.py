"""Optional dependencies, imported late, with one friendly line when they are missing."""

from __future__ import annotations

import importlib
from types import ModuleType

from gputwin.core.errors import UserError


def require(module: str, *, extra: str) -> ModuleType:
    """Return the imported `module`, or say which extra of gputwin brings it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UserError(f"this needs the '{module}' package; install it with: pip install 'gputwin[{extra}]'") from None
