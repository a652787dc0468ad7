"""Ctrl-C ends the command within a second, also while compiled code (a simulation, a solver, a reader) runs.

Python raises KeyboardInterrupt only between its own instructions. So a thread hears of the signal too, gives the command
a moment to clean up, and then ends the process and those it started. Compiled code that keeps all threads waiting is
ended from outside, by a small process that hears of the signal as well: with a second interrupt, for which the system
itself ends the command, so that its code is still that of an interrupt. What is written appears whole or not at all, so
nothing half-written takes a result's place.
"""

from __future__ import annotations

import importlib.util
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

EXIT_INTERRUPTED = 130
_GRACE_SECONDS = 0.25
_LAST_SECONDS = 0.15
_MESSAGE = b"gputwin: interrupted\n"
INTERRUPTED = threading.Event()
"""Set once Ctrl-C was heard: what fails after that fails because of it."""


def leave_promptly() -> None:
    """End the process soon after an interrupt, whatever it does then; only at the start of a command."""
    if os.name != "posix":
        return
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
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
        pythons = libc.signal(signal.SIGINT, None)

        def arm() -> None:
            libc.sysv_signal(signal.SIGINT, pythons)

        arm()
        # Importing Polars puts a handler of its own in the place, which the system then calls at every interrupt.
        sys.meta_path.insert(0, _AfterImport("polars", arm))


class _AfterImport:
    """Calls a function once a module has been imported."""

    def __init__(self, module: str, then: Callable[[], None]) -> None:
        self._module, self._then = module, then

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how the module is found, with the call behind it; None for all other modules."""
        if name != self._module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_then_call(module: ModuleType) -> None:
                execute(module)
                self._then()

            spec.loader.exec_module = execute_then_call  # type: ignore[method-assign]
        return spec


def _stand_by(heard: int, passing_on: int, command: int) -> None:
    """Pass an interrupt on to the command's thread, and end the command where that does not: the process outside it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while (number := os.read(heard, 1)) and number[0] != signal.SIGINT:
        pass
    if not number:
        os._exit(0)
    with suppress(OSError):
        os.write(passing_on, b"!")
    _end_with(heard, _GRACE_SECONDS + _LAST_SECONDS)
    started = _started_by(command)
    if os.getppid() != command:
        os._exit(0)
    with suppress(ProcessLookupError):
        os.kill(command, signal.SIGINT)
        _end(started)
        _end_with(heard, _LAST_SECONDS)
        os.kill(command, signal.SIGKILL)
    os._exit(0)


def _end_with(heard: int, seconds: float) -> None:
    """Wait so long, and end this process as soon as the command has ended: whoever reads its output waits for both."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if select.select([heard], [], [], left)[0] and not os.read(heard, 64):
            os._exit(0)


def _started_by(process: int) -> list[int]:
    """Return the processes that this one and those below it started, where the system says so, without the one that asks."""
    found: list[int] = []
    with suppress(OSError):
        for tasks in Path(f"/proc/{process}/task").iterdir():
            found += [int(child) for child in (tasks / "children").read_text().split()]
    found = [child for child in found if child != os.getpid()]
    return [*found, *(below for child in found for below in _started_by(child))]


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
    # A simulation under way would not listen to anything milder.
    _end(_started_by(os.getpid()))
    # Where the system does not say. Looked up, not imported: importing may wait for what is being interrupted.
    parallel = sys.modules.get("multiprocessing")
    for process in parallel.active_children() if parallel is not None else ():
        process.kill()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(EXIT_INTERRUPTED)
