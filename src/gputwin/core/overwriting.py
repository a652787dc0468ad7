"""Whether files and folders that gputwin did not write may be overwritten: only where the user says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ALLOWED: ContextVar[bool] = ContextVar("overwriting", default=False)


@contextmanager
def overwriting(allowed: bool) -> Iterator[None]:
    """Let what is written inside replace what others wrote, or not."""
    token = _ALLOWED.set(allowed)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def may_overwrite() -> bool:
    """Return whether the user lets what others wrote be replaced."""
    return _ALLOWED.get()
