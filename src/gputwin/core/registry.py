"""Named things (readers, policies, models) that announce themselves and can be looked up by name."""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import pkgutil
import threading
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from gputwin.core.errors import UserError


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str: ...  # noqa: D102


T = TypeVar("T", bound=Named)


class Registry(Generic[T]):
    """Entries of one kind; modules of `package` and of the entry-point group register theirs when imported.

    Names in `besides` have no entry and are understood all the same, so that a wrong name is answered with them too.
    """

    def __init__(self, kind: str, package: str, *, besides: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.besides = besides
        self.package = package
        self._entries: dict[str, T] = {}
        self._loaded = False
        self._is_loading = False
        self._lock = threading.RLock()

    def add(self, entry: T) -> T:
        """Register `entry` under its name and return it."""
        if entry.name in self._entries:
            raise ValueError(f"{self.kind} '{entry.name}' is registered twice")
        self._entries[entry.name] = entry
        return entry

    def discard(self, name: str) -> None:
        """Take the entry called `name` out, where it is there."""
        self._entries.pop(name, None)

    def get(self, name: str) -> T:
        """Return the entry called `name`; a wrong name is a user error that suggests the nearest ones."""
        self._load()
        try:
            return self._entries[name]
        except KeyError:
            known = sorted([*self._entries, *self.besides])
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
            raise UserError(f"unknown {self.kind} '{name}'; {hint}") from None

    def names(self) -> list[str]:
        """Return all names, sorted."""
        self._load()
        return sorted(self._entries)

    def __iter__(self) -> Iterator[T]:
        return iter([self._entries[name] for name in self.names()])

    def _load(self) -> None:
        """Import every module that registers entries; where one fails, the next call tries again and fails alike."""
        with self._lock:
            # A module that asks while it is being imported sees the entries so far.
            if self._loaded or self._is_loading:
                return
            self._is_loading = True
            before = dict(self._entries)
            try:
                package = importlib.import_module(self.package)
                for module in pkgutil.iter_modules(package.__path__):
                    if not module.name.startswith("_"):
                        before = dict(self._entries)
                        importlib.import_module(f"{self.package}.{module.name}")
                for point in importlib.metadata.entry_points(group=self.package):
                    before = dict(self._entries)
                    point.load()
            except BaseException:
                # What the broken module had registered must not be there twice when it is imported again.
                self._entries = before
                raise
            finally:
                self._is_loading = False
            self._loaded = True
