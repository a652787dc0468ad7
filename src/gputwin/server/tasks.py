"""Work in child processes with limits: started, watched, cancelled, and never more at once than the machine bears.

A child that runs out of memory, time or luck ends alone; the server reports it and goes on.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import secrets
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from gputwin.core.errors import GputwinError, shorten
from gputwin.core.steps import share_done
from gputwin.server.settings import Limits
from gputwin.server.wording import in_page

_KEPT = 500
_TICK = 0.1
_GRACE = 2.0
_REMEMBERED = 30.0
Told = Callable[[str, float | None], None]


class State(StrEnum):
    """Where a task stands."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class BusyError(GputwinError):
    """Too much is waiting already."""


@dataclass(frozen=True)
class Work:
    """What a child does: a function of this package by name, its arguments, and its limits."""

    kind: str
    title: str
    function: Callable[..., dict[str, Any]]
    arguments: dict[str, Any]
    memory_bytes: int
    written_bytes: int
    seconds: float
    then: str = ""
    """The page that shows the result; `{id}` stands for the id in the result."""
    cleanup: Callable[[], None] | None = None


@dataclass
class Task:
    """One piece of work: its progress, and its result or what went wrong, in one line."""

    id: str
    key: str
    work: Work
    state: State = State.WAITING
    step: str = "waiting for its turn"
    done: float | None = None
    error: str | None = None
    result: dict[str, Any] | None = None
    begun: float = field(default_factory=time.time)
    ended: float | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)

    def end(self, ended: Ended) -> None:
        """Take in how it ended; the state last, since others look at it first."""
        self.ended, self.error, self.result = time.time(), ended.error, ended.result
        self.done = 1.0 if ended.state == State.DONE else self.done
        self.step = ended.state.value
        self.state = ended.state

    def to_json(self) -> dict[str, Any]:
        """Return the task as plain data."""
        page = ""
        if self.state == State.DONE and self.work.then:
            page = self.work.then.replace("{id}", str((self.result or {}).get("id", "")))
        return {
            "id": self.id,
            "kind": self.work.kind,
            "title": self.work.title,
            "state": self.state.value,
            "step": self.step,
            "done": self.done,
            "error": self.error,
            "seconds": round((self.ended or time.time()) - self.begun, 1),
            "page": page,
        }


class Ended(NamedTuple):
    """How a task ended: its state, and its result or what went wrong."""

    state: State
    error: str | None = None
    result: dict[str, Any] | None = None


class Tasks:
    """All work of one server: at most so many at once, the others wait their turn; the same work is not begun twice."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._tasks: OrderedDict[str, Task] = OrderedDict()
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(limits.running_tasks)
        self._closed = False
        # A child of a process with threads is not safe to fork; one of the fork server is, and starts at once.
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["gputwin.server.work"])

    def start(self, key: str, work: Work) -> Task:
        """Return the task with this key that is under way, or a new one; BusyError where too many wait."""
        with self._lock:
            for task in self._tasks.values():
                if task.key == key and task.state in (State.WAITING, State.RUNNING):
                    if work.cleanup is not None:
                        work.cleanup()
                    return task
            waiting = sum(t.state == State.WAITING for t in self._tasks.values())
            if waiting >= self._limits.waiting_tasks or self._closed:
                raise BusyError(f"{waiting} tasks are waiting already; try again when some have ended")
            task = Task(secrets.token_hex(8), key, work)
            self._tasks[task.id] = task
            ended = [t.id for t in self._tasks.values() if t.state not in (State.WAITING, State.RUNNING)]
            for old in itertools.islice(ended, max(len(self._tasks) - _KEPT, 0)):
                del self._tasks[old]
        threading.Thread(target=self._watch, args=(task,), daemon=True, name=f"task-{task.id}").start()
        return task

    def get(self, id_: str) -> Task | None:
        """Return a task by its id."""
        return self._tasks.get(id_)

    def failed(self, key: str) -> Task | None:
        """Return the last task with this key where it failed a moment ago; later it may be tried again."""
        for task in reversed(list(self._tasks.values())):
            if task.key == key:
                is_fresh = time.time() - (task.ended or 0.0) < _REMEMBERED
                return task if task.state == State.FAILED and is_fresh else None
        return None

    def under_way(self, key: str) -> Task | None:
        """Return the last task with this key, whatever became of it."""
        return next((task for task in self.all() if task.key == key), None)

    def all(self) -> list[Task]:
        """Return all tasks that are remembered, the latest first."""
        return list(reversed(list(self._tasks.values())))

    def cancel(self, id_: str) -> Task | None:
        """Return the task, asked to stop where it had not ended."""
        task = self._tasks.get(id_)
        if task is not None:
            task.cancelled.set()
        return task

    def close(self) -> None:
        """Stop everything and wait a moment for it."""
        self._closed = True
        for task in self.all():
            task.cancelled.set()
        until = time.monotonic() + _GRACE
        while time.monotonic() < until and any(t.state in (State.WAITING, State.RUNNING) for t in self.all()):
            time.sleep(_TICK / 2)

    def _watch(self, task: Task) -> None:
        ended = Ended(State.CANCELLED)
        try:
            if self._has_turn(task):
                try:
                    ended = self._run(task)
                finally:
                    self._slots.release()
        except Exception as error:
            ended = Ended(State.FAILED, f"internal error: {type(error).__name__}")
            raise
        finally:
            if task.work.cleanup is not None:
                task.work.cleanup()
            task.end(ended)

    def _has_turn(self, task: Task) -> bool:
        """Wait for the task's turn; False where it was cancelled before."""
        while not task.cancelled.is_set():
            if self._slots.acquire(timeout=_TICK):
                return True
        return False

    def _run(self, task: Task) -> Ended:
        """Return how the work ended, when its process is gone."""
        task.state, task.step = State.RUNNING, "starting"
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=run_work, args=(replace(task.work, cleanup=None), theirs))
        process.start()
        theirs.close()
        until = time.monotonic() + task.work.seconds
        try:
            while True:
                if task.cancelled.is_set():
                    return Ended(State.CANCELLED)
                if time.monotonic() > until:
                    return Ended(State.FAILED, f"took longer than {task.work.seconds:,.0f} s and was stopped")
                ended = _heard(task, ours, process.is_alive)
                if ended is not None:
                    return ended
        finally:
            ours.close()
            _kill(process.pid)
            process.join(_GRACE)


def _heard(task: Task, ours: Connection, is_alive: Callable[[], bool]) -> Ended | None:
    """Return how the child ended, after taking in what it says; None while it works."""
    if not ours.poll(_TICK):
        return None if is_alive() or ours.poll(0) else Ended(State.FAILED, _GONE)
    try:
        kind, *said = ours.recv()
    except (EOFError, OSError):
        return Ended(State.FAILED, _GONE)
    if kind == "step":
        task.step, task.done = shorten(said[0], 200), said[1]
        return None
    return Ended(State.DONE, result=said[0]) if kind == "done" else Ended(State.FAILED, shorten(said[0], 1000))


def _kill(leader: int | None) -> None:
    """End a child and the processes it started, which are in a group of its own."""
    if leader is None:
        return
    for end in (os.killpg, os.kill):
        with suppress(OSError):
            end(leader, signal.SIGKILL)


_GONE = "it ran out of memory or time and was stopped; give it less data, or raise the server's limits"


def run_work(work: Work, told: Connection) -> None:
    """Do the work in this process, under its limits, and report how it goes; the entry of a child."""
    _limit(work)
    last = 0.0

    def step(text: str, done: float | None = None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > _TICK or done is None:
            last = now
            told.send(("step", text, share_done(text) if done is None else done))

    try:
        told.send(("done", work.function(step=step, **work.arguments)))
    except MemoryError:
        told.send(("failed", _GONE))
    except GputwinError as error:
        told.send(("failed", in_page(str(error))))
    except BaseException as error:
        if os.environ.get("GPUTWIN_DEBUG"):
            raise
        told.send(("failed", f"internal error: {type(error).__name__}: {shorten(' '.join(str(error).split()), 300)}"))


def _limit(work: Work) -> None:
    """Give this process a group of its own, and bound its memory, CPU time and what it may write."""
    os.setpgid(0, 0)
    os.nice(5)
    try:
        import resource
    except ImportError:
        return
    for kind, most in (
        (resource.RLIMIT_AS, work.memory_bytes),
        (resource.RLIMIT_CPU, int(work.seconds) + 1),
        (resource.RLIMIT_FSIZE, work.written_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (wanted, wanted))
