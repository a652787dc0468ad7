"""Ctrl-C ends the command within a second, also while compiled code (a solver, a reader, a pool of processes) runs.

Python raises KeyboardInterrupt only between its own instructions. A thread of its own hears of the signal at once, gives
the command a moment to clean up, and then ends the process and those it started. What is written appears whole or not
at all, so nothing half-written takes a result's place.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress

EXIT_INTERRUPTED = 130
_GRACE_SECONDS = 0.6


def leave_promptly() -> None:
    """End the process soon after an interrupt, whatever it does then; only for the main thread of a command."""
    if os.name != "posix":
        return
    heard, told = os.pipe()
    os.set_blocking(told, False)

    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(heard,), daemon=True, name="interrupt").start()


def _wait(heard: int) -> None:
    while (number := os.read(heard, 1)) and number[0] != signal.SIGINT:
        pass
    time.sleep(_GRACE_SECONDS)
    sys.stderr.write("gputwin: interrupted\n")
    leave_now()


def leave_now() -> None:
    """End the process and those it started, without waiting for threads or tidying up memory."""
    # Looked up, not imported: importing may wait for what is being interrupted.
    parallel = sys.modules.get("multiprocessing")
    for process in parallel.active_children() if parallel is not None else ():
        process.terminate()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(EXIT_INTERRUPTED)
