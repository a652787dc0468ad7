"""How many processors are used, on systems that say which ones a process may use and on others."""

from __future__ import annotations

import os

import pytest

from gputwin.core.processors import processors


def test_where_the_system_does_not_say_which_processors_may_be_used_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert processors() == 6
