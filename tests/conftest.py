"""Fixtures for the whole suite. Real traces are read from $GPUTWIN_TEST_DATA, `../shared/data` by default; published
facts and expected results from $GPUTWIN_TEST_REFERENCE, `../shared/reference` by default.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
REAL_DATA = Path(os.environ.get("GPUTWIN_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
REFERENCE = Path(os.environ.get("GPUTWIN_TEST_REFERENCE", REPOSITORY.parent / "shared" / "reference"))

AXE = REPOSITORY / "tests" / "browser" / "node_modules" / "axe-core" / "axe.min.js"
needs_axe = pytest.mark.skipif(not AXE.is_file(), reason="no axe-core (`make system` installs it)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium; closed after each module, since its driver keeps an event loop running."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is a test dependency")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on this machine")
    with playwright.sync_playwright() as made:
        opened = made.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def real_data() -> Path:
    if not REAL_DATA.is_dir():
        pytest.skip(f"no real traces at {REAL_DATA}; set GPUTWIN_TEST_DATA to their folder")
    return REAL_DATA


@pytest.fixture(scope="session")
def reference() -> Path:
    if not REFERENCE.is_dir():
        pytest.skip(f"no reference tables at {REFERENCE}; set GPUTWIN_TEST_REFERENCE to their folder")
    return REFERENCE
