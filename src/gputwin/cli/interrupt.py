"""Ctrl-C ends the command within a second, also while compiled code (a simulation, a solver, a reader) runs.

Python raises KeyboardInterrupt only between its own instructions. So a thread hears of the signal too, gives the command
a moment to clean up, and then ends the process and those it started. Compiled code that keeps all threads waiting is
ended from outside, by a small process that hears of the signal as well. What is written appears whole or not at all, so
nothing half-written takes a result's place.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

EXIT_INTERRUPTED = 130
_GRACE_SECONDS = 0.4
_LAST_SECONDS = 0.25
_MESSAGE = b"gputwin: interrupted\n"
INTERRUPTED = threading.Event()
"""Set once Ctrl-C was heard: what fails after that fails because of it."""


def leave_promptly() -> None:
    """End the process soon after an interrupt, whatever it does then; only at the start of a command."""
    if os.name != "posix":
        return
    # Processes ended at once cannot tidy up; that what they leave is removed for them is no news to a user.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    heard, told = os.pipe()
    passed_on, passing_on = os.pipe()
    command = os.getpid()
    if os.fork() == 0:
        os.close(told)
        os.close(passed_on)
        _stand_by(heard, passing_on, command)
    os.close(heard)
    os.close(passing_on)
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    _second_interrupt_ends()
    sys.unraisablehook = _without_interrupts
    threading.Thread(target=_wait, args=(passed_on,), daemon=True, name="interrupt").start()


def _without_interrupts(error: sys.UnraisableHookArgs) -> None:
    """Report an error that nobody can catch, unless it is the interrupt itself."""
    if not issubclass(error.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(error)


def _second_interrupt_ends() -> None:
    """Let the system itself end the process at a second interrupt, which needs no Python; only where libc can do that."""
    import ctypes

    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        for function in (libc.signal, libc.sysv_signal):
            function.restype, function.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p)
        libc.sysv_signal(signal.SIGINT, libc.signal(signal.SIGINT, None))


def _stand_by(heard: int, passing_on: int, command: int) -> None:
    """Pass an interrupt on to the command's thread, and end the command where that does not: the process outside it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while (number := os.read(heard, 1)) and number[0] != signal.SIGINT:
        pass
    if not number:
        os._exit(0)
    with suppress(OSError):
        os.write(passing_on, b"!")
    time.sleep(_GRACE_SECONDS + _LAST_SECONDS)
    started = _started_by(command)
    if os.getppid() != command:
        os._exit(0)
    with suppress(ProcessLookupError):
        os.kill(command, signal.SIGINT)
        _end(started)
        time.sleep(_LAST_SECONDS)
        os.kill(command, signal.SIGKILL)
    os._exit(0)


def _started_by(process: int) -> list[int]:
    """Return the processes that this one started, where the system tells, without the one that asks."""
    found: list[int] = []
    with suppress(OSError):
        for tasks in Path(f"/proc/{process}/task").iterdir():
            found += [int(child) for child in (tasks / "children").read_text().split()]
    return [child for child in found if child != os.getpid()]


def _end(processes: list[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _wait(passed_on: int) -> None:
    if not os.read(passed_on, 1):
        return
    INTERRUPTED.set()
    time.sleep(_GRACE_SECONDS)
    os.write(sys.stderr.fileno(), _MESSAGE)
    leave_now()


def leave_now() -> None:
    """End the process and those it started, without waiting for threads or tidying up memory."""
    # Looked up, not imported: importing may wait for what is being interrupted.
    parallel = sys.modules.get("multiprocessing")
    for process in parallel.active_children() if parallel is not None else ():
        # A simulation under way would not listen to anything milder.
        process.kill()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(EXIT_INTERRUPTED)
