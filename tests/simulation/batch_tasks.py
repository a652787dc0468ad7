"""Tasks for the tests of the batch runner: processes must be able to import them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from gputwin.core.errors import InputError

RECORD = np.dtype([("a", np.float64), ("b", np.int32)], align=True)


def after_a_while(value: int, seconds: float) -> int:
    time.sleep(seconds)
    return value


def look_at(shared: dict[str, Any], k: int) -> tuple[int, int, int]:
    numbers, records = shared["numbers"], shared["records"]
    assert numbers.flags.aligned
    assert records.flags.aligned
    assert shared["none"].size == 0
    total = int(numbers.sum()) - int(numbers[0])
    numbers[0] = k
    time.sleep(0.05)
    return os.getpid(), id(shared), total


def refuse(k: int) -> int:
    raise InputError("no number", file=Path("bad.csv"), row=3, field="gpu")


def killed_once(folder: str, k: int) -> int:
    marker = Path(folder) / str(k)
    if k in (2, 4) and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return k


def always_killed(k: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return k


def size_of(values: Any) -> int:
    return int(values.size)


def announce_and_stay(folder: str, k: int) -> int:
    (Path(folder) / f"{os.getpid()}.pid").touch()
    time.sleep(120)
    return k
