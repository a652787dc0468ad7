"""Fixtures for the whole suite. Real traces are read from $GPUTWIN_TEST_DATA, `../shared/data` by default; published
facts and expected results from $GPUTWIN_TEST_REFERENCE, `../shared/reference` by default.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
REAL_DATA = Path(os.environ.get("GPUTWIN_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
REFERENCE = Path(os.environ.get("GPUTWIN_TEST_REFERENCE", REPOSITORY.parent / "shared" / "reference"))


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
