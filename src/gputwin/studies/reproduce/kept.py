"""Published results made before, kept in a folder as each ends: a run of all goes on where it was ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gputwin.core.atomic import atomic_file
from gputwin.core.version import VERSION


@dataclass(frozen=True)
class Kept:
    """A folder of results; a result is the same only if it was made with the same options by the same version."""

    folder: Path

    def find(self, name: str, options: Mapping[str, Any]) -> Any:
        """Return what was kept of a result; None where there is nothing, or it was made in another way."""
        try:
            found = json.loads(self._file(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found.get("shown") if isinstance(found, dict) and found.get("made") == _stamp(options) else None

    def keep(self, name: str, options: Mapping[str, Any], shown: Any) -> None:
        """Write a result, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(self._file(name)) as fresh:
            fresh.write_text(json.dumps({"made": _stamp(options), "shown": shown}), encoding="utf-8")

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.json"


def _stamp(options: Mapping[str, Any]) -> dict[str, Any]:
    return {"version": VERSION, "options": {name: str(value) for name, value in sorted(options.items())}}
