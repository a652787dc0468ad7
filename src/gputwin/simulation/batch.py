"""Many tasks at once on any `concurrent.futures.Executor`: processes of this machine by default.

Results come in the order of the calls and do not depend on the executor or the number of workers. What all tasks need
(a workload, a trace) is shared: written to a file once, which each process maps into memory once. A worker that dies is
replaced and its task run again. Workers end with this process, and at once on Ctrl-C.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from functools import lru_cache
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from gputwin.core.errors import GputwinError
from gputwin.core.processors import processors
from gputwin.simulation.engine.compiled import is_compiled

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Told how many tasks are done, and how many there are."""
_ALIGNED = 64
_WORTH_PROCESSES = 300_000
"""Jobs simulated in all: fewer take less time than starting processes."""
_MOST_LOST = 3
"""Worker pools in a row that may break without a single task done."""


class Shared(Generic[T]):
    """A value that many tasks are given; other processes read it from a file, each once."""

    def __init__(self, value: T) -> None:
        self.value = value
        self._file: _File | None = None

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if self._file is None:
            self._file = _File.of(self.value)
        return _read, (str(self._file.path), self._file.parts)

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.path.unlink(missing_ok=True)
            self._file = None


class _File:
    """A pickled value; its arrays lie in the file as they are, so that processes can map them."""

    def __init__(self, path: Path, parts: tuple[tuple[int, int], ...]) -> None:
        self.path, self.parts = path, parts

    @classmethod
    def of(cls, value: object) -> _File:
        arrays: list[pickle.PickleBuffer] = []
        stream = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
        handle, name = tempfile.mkstemp(prefix="gputwin-", suffix=".shared")
        parts = []
        with os.fdopen(handle, "wb") as file:
            for part in (memoryview(stream), *(array.raw() for array in arrays)):
                file.write(bytes(-file.tell() % _ALIGNED))
                parts.append((file.tell(), part.nbytes))
                file.write(part)
        return cls(Path(name), tuple(parts))


@lru_cache(maxsize=16)
def _read(path: str, parts: tuple[tuple[int, int], ...]) -> Shared[Any]:
    """Return the value in a file, mapped: pages are common to all processes until one writes to them."""
    with Path(path).open("rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    stream, *arrays = (whole[begin : begin + size] for begin, size in parts)
    return Shared(pickle.loads(stream, buffers=arrays))


def workers_for(jobs: int) -> int:
    """Return how many processes pay to simulate so many jobs in all: one a processor, or this one alone for few jobs."""
    return processors() if jobs >= _WORTH_PROCESSES else 1


class Batch:
    """Runs calls of module-level functions. Use as a context; results do not depend on the executor.

    `executor` is any of the standard interface and stays open; without one, `workers` processes are started when first
    needed. One worker: all runs here.
    """

    def __init__(self, executor: Executor | None = None, workers: int = 1) -> None:
        self._lent = executor
        self._workers = max(workers, 1)
        self._processes: _Processes | None = None
        self._shared: list[Shared[Any]] = []

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end(at_once=kind is not None)
        for shared in self._shared:
            shared.close()

    def share(self, value: T) -> Shared[T]:
        """Return a reference to the value; functions that are given it among their arguments get the value itself."""
        shared = Shared(value)
        self._shared.append(shared)
        return shared

    def map(
        self, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], progress: Progress | None = None
    ) -> list[T]:
        """Return the results of all calls in their order; `progress` is called as they come in.

        The first error of a call ends the batch.
        """
        results: dict[int, T] = {}

        def done(i: int, result: T) -> None:
            results[i] = result
            if progress is not None:
                progress(len(results), len(calls))

        self.each(function, calls, done)
        return [results[i] for i in range(len(calls))]

    def each(
        self, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], done: Callable[[int, T], None]
    ) -> None:
        """Call `done` with the number of each call and its result as soon as it is there; none is kept here.

        The first error of a call ends the batch.
        """
        left = dict.fromkeys(range(len(calls)))

        def tell(i: int, result: T) -> None:
            del left[i]
            done(i, result)

        if self._lent is None and (self._workers == 1 or len(calls) == 1):
            for i, call in enumerate(calls):
                tell(i, _call(function, call))
            return
        lost = 0
        while left:
            open_calls, before = list(left), len(left)
            try:
                if before == len(calls) and not is_compiled():
                    # The first one compiles the engine, which the others then find in the cache.
                    open_calls = open_calls[:1]
                self._run({i: calls[i] for i in open_calls}, function, tell)
            except BrokenExecutor:
                lost = 0 if len(left) < before else lost + 1
                if self._lent is not None:
                    # Nobody but its owner can replace it.
                    for i in list(left):
                        tell(i, _call(function, calls[i]))
                self._end(at_once=True)
                if lost >= _MOST_LOST:
                    raise GputwinError(
                        f"worker processes ended {lost} times before a task was done; give them more memory or use fewer "
                        "(a script must call below: if __name__ == '__main__')"
                    ) from None
            except BaseException:
                self._end(at_once=True)
                raise

    def _run(
        self, calls: dict[int, tuple[Any, ...]], function: Callable[..., T], done: Callable[[int, T], None]
    ) -> None:
        pool = self._pool()
        pending: dict[Future[T], int] = {pool.submit(_call, function, call): i for i, call in calls.items()}
        try:
            while pending:
                finished, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in sorted(finished, key=pending.__getitem__):
                    done(pending.pop(future), future.result())
        finally:
            for future in pending:
                future.cancel()

    def _pool(self) -> Executor:
        if self._lent is not None:
            return self._lent
        if self._processes is None:
            self._processes = _Processes(self._workers)
        return self._processes.pool

    def _end(self, *, at_once: bool) -> None:
        if self._processes is not None:
            self._processes.end(at_once=at_once)
            self._processes = None


class _Worker(SpawnProcess):
    """A process that Ctrl-C does not reach, from its first moment on: the one that started it decides."""

    def start(self) -> None:
        """Start the process; it takes over which signals are blocked."""
        if not hasattr(signal, "pthread_sigmask"):
            super().start()
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Recording(SpawnContext):
    """Starts processes anew (forking would copy the locks of Polars' threads as they happen to be) and knows them."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[Any] = []

    def Process(self, *arguments: Any, **options: Any) -> Any:  # type: ignore[override]  # noqa: N802
        """Return a new process."""
        process = _Worker(*arguments, **options)
        self.started.append(process)
        return process


class _Processes:
    """Worker processes that can be ended at once."""

    def __init__(self, workers: int) -> None:
        self._context = _Recording()
        self.pool = ProcessPoolExecutor(workers, mp_context=self._context, initializer=_begin_worker)

    def end(self, *, at_once: bool) -> None:
        if at_once:
            for process in self._context.started:
                # A simulation under way would not listen to anything milder.
                if process.pid is not None and process.exitcode is None:
                    process.kill()
        self.pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _call(function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    return function(*(a.value if isinstance(a, Shared) else a for a in arguments))
