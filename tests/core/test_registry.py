from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from gputwin.core.errors import UserError
from gputwin.core.registry import Registry


@dataclass(frozen=True)
class Entry:
    name: str


class Package:
    """A package on disk whose modules register entries with the registry in its `__init__`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("__init__", "from gputwin.core.registry import Registry\nREGISTRY = Registry('thing', __name__)")

    def write(self, module: str, code: str) -> None:
        (self.folder / f"{module}.py").write_text(dedent(code))

    def add(self, module: str, *, after: str = "", before: str = "") -> None:
        """Write a module that registers an entry of its own name, and does more before or after that."""
        entry = f"REGISTRY.add(Entry({module!r}))"
        parts = ["from things import REGISTRY", "from tests.core.test_registry import Entry", before, entry, after]
        self.write(module, "\n".join(parts))

    @property
    def registry(self) -> Registry[Entry]:
        import things  # type: ignore[import-not-found]

        return things.REGISTRY  # type: ignore[no-any-return]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    (tmp_path / "things").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield Package(tmp_path / "things")
    for name in [n for n in sys.modules if n.partition(".")[0] == "things"]:
        del sys.modules[name]


def test_modules_of_the_package_are_found_and_sorted(package: Package) -> None:
    for name in ("pear", "apple", "_hidden"):
        package.add(name)
    assert package.registry.names() == ["apple", "pear"]
    assert [e.name for e in package.registry] == ["apple", "pear"]
    assert package.registry.get("pear") == Entry("pear")


def test_a_broken_module_fails_each_time_and_hides_nothing(package: Package) -> None:
    package.add("apple")
    package.add("broken", after="raise RuntimeError('no luck')")
    package.add("pear")
    for _ in range(3):
        with pytest.raises(RuntimeError, match="no luck"):
            package.registry.names()
    package.add("broken", after="# mended")
    sys.path_importer_cache.clear()
    assert package.registry.names() == ["apple", "broken", "pear"]


def test_a_module_may_ask_while_it_is_imported(package: Package) -> None:
    package.add("apple")
    package.add("pear", before="SEEN = REGISTRY.names()")
    assert package.registry.names() == ["apple", "pear"]
    assert sys.modules["things.pear"].SEEN == ["apple"]


def test_another_thread_waits_for_all_entries(package: Package) -> None:
    package.add("apple", after="import time; time.sleep(0.05)")
    package.add("pear")
    registry = package.registry
    seen: list[list[str]] = []
    threads = [threading.Thread(target=lambda: seen.append(registry.names())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [["apple", "pear"]] * 4


def test_the_same_name_twice_is_a_fault(package: Package) -> None:
    package.add("apple")
    package.write("second", "from things.apple import REGISTRY, Entry\nREGISTRY.add(Entry('apple'))")
    with pytest.raises(ValueError, match="thing 'apple' is registered twice"):
        package.registry.names()


def test_a_wrong_name_suggests_the_nearest_or_lists_all(package: Package) -> None:
    package.add("apple")
    package.add("pear")
    with pytest.raises(UserError, match=r"unknown thing 'aple'; did you mean 'apple'\?"):
        package.registry.get("aple")
    with pytest.raises(UserError, match="unknown thing 'zzz'; known: apple, pear"):
        package.registry.get("zzz")
