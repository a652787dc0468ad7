"""Training jobs as the authors of Pollux simulate them: measured step times and measured statistical efficiency.

Progress counts steps of the initial batch. A step of a larger batch advances it by the gain that the measured gradient
statistics give (Qiao et al., OSDI'21, sections 3.1 and 5.3).
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from gputwin.core.errors import InputError
from gputwin.studies.reproduce.pollux_profiles import read_placements, read_scalability

Floats = npt.NDArray[np.float64]
EPOCHS = {"bert": 2, "cifar10": 100, "ncf": 10, "imagenet": 90, "deepspeech2": 80, "yolov3": 50}
MOST_LOCAL = {"yolov3": 8}
"""Largest batch on a GPU where it is less than the largest that was measured."""
MOST_NODES = 16
RESTART_SECONDS = 30


class Application:
    """One of the six applications: its curves by batch size and its step times by placement."""

    def __init__(self, name: str, profiles: Path, validation: Path) -> None:
        self.name = name
        self.epochs = EPOCHS[name]
        curves = {int(path.stem.split("-")[1]): pl.read_csv(path) for path in (validation / name).glob("*.csv")}
        if not curves:
            raise InputError(
                "no validation curves", file=validation / name, remedy="give the folder with Pollux's data"
            )
        self.batches = np.array(sorted(curves))
        columns = ("progress", "iteration", "grad_sqr", "grad_var")
        self.curve = {
            column: np.array([curves[b][column].to_numpy()[: self.epochs] for b in self.batches]) for column in columns
        }
        self.placements = read_placements(profiles, name)
        self.scalability = read_scalability(profiles, name)
        local = self.placements["local_bsz"]
        self.least_local = int(local.min())  # type: ignore[arg-type]
        self.most_local = MOST_LOCAL.get(name, int(local.max()))  # type: ignore[arg-type]
        self.initial_batch, self.most_batch = int(self.batches[0]), int(self.batches[-1])
        self.step_seconds = cache(self._step_seconds)
        self.gain = cache(self._gain)
        self.packed_speed = cache(self._packed_speed)

    def progress_after(self, epochs: int) -> float:
        """Return the progress at the end of this many epochs, by the batch size that needs least."""
        return float(self.curve["progress"][:, epochs - 1].min())

    def iterations_after(self, batch: int, epochs: int) -> float:
        """Return the steps that this batch size takes for so many epochs."""
        return float(self._between("iteration", batch, epochs - 1)) if epochs else 0.0

    def _between(self, column: str, batch: int, epoch: int) -> float:
        return float(np.interp(batch, self.batches, self.curve[column][:, epoch]))

    def _gain(self, batch: int, epoch: int) -> float:
        """Return the progress of a step of this batch in an epoch, in steps of the initial batch."""
        square, variance = (self._between(c, batch, epoch) for c in ("grad_sqr", "grad_var"))
        return (variance + square) / (variance * self.initial_batch / batch + square)

    def noise(self, batch: int, epoch: int) -> float:
        """Return the gradient's variance over its square in an epoch."""
        return self._between("grad_var", batch, epoch) / self._between("grad_sqr", batch, epoch)

    def _packed_speed(self, batch: int, gpus: int) -> float:
        """Return the steps a second of a batch on GPUs packed onto nodes of four, as Optimus predicts them."""
        full, rest = divmod(gpus, 4)
        local, added = self.split(batch, gpus)
        if gpus == 1 and not added:
            local, added = math.ceil(batch / 2 - 1e-8), 1
        step, sync = self.step_seconds((4,) * full + (rest,) * bool(rest), local)
        return 1.0 / (step + (step - sync) * added)

    def split(self, batch: int, gpus: int) -> tuple[int, int]:
        """Return the batch on a GPU at a time, and how many of these are added up before a step besides the last."""
        local = math.ceil(batch / gpus - 1e-8)
        added = math.ceil(local / self.most_local - 1e-8) - 1
        if gpus == 1 and batch > self.initial_batch:
            added = max(1, added)
        at_a_time = math.ceil(local / (added + 1) - 1e-8)
        return min(at_a_time, self.most_batch // (gpus * (added + 1))), added

    def _step_seconds(self, placement: tuple[int, ...], local: int) -> tuple[float, float]:
        """Return the seconds of a step and of its synchronisation: as measured for this placement, or interpolated."""
        turned = min(placement[i:] + placement[:i] for i in range(len(placement)))
        rows = self.placements.filter(placement=int("".join(map(str, turned)))).sort("local_bsz")
        if rows.height:
            batch = rows["local_bsz"].to_numpy()
            step, sync = (float(np.interp(local, batch, rows[c].to_numpy())) for c in ("step_time", "sync_time"))
            return step, sync
        asked = (min(len(placement), MOST_NODES), sum(placement), local)
        step, sync = (float(value) for value in np.ravel(self._interpolator(asked)))
        if math.isnan(step):
            raise InputError(
                f"{self.name}: no step time measured near {asked[0]} nodes, {asked[1]} GPUs, batch {local}"
            )
        return step, sync

    @property
    def _interpolator(self):  # type: ignore[no-untyped-def]
        if not hasattr(self, "_interpolated"):
            from scipy.interpolate import LinearNDInterpolator

            keys, values = ["nodes", "gpus", "local_bsz"], ["step_time", "sync_time"]
            means = self.placements.group_by(keys).agg(pl.col(*values).mean()).sort(keys)
            whole = pl.concat(f.select(pl.col(*keys, *values).cast(pl.Float64)) for f in (means, self.scalability))
            self._interpolated = LinearNDInterpolator(whole.select(keys).to_numpy(), whole.select(values).to_numpy())
        return self._interpolated


class Job:
    """A job in the simulation; times in whole seconds."""

    def __init__(self, name: str, application: Application, submit: int, gpus: int, batch: int) -> None:
        self.name, self.application = name, application
        self.submit, self.gpus, self.batch = submit, gpus, batch
        self.placement: tuple[int, ...] = ()
        self.restart_left = 0
        self.progress, self.epoch = 0.0, 0
        self.attained = 0
        self.end: int | None = None

    def place(self, allocation: list[int]) -> None:
        """Give the job these GPUs, named by their nodes; it restarts."""
        counts: list[int] = []
        for k, node in enumerate(allocation):
            if k == 0 or node != allocation[k - 1]:
                counts.append(0)
            counts[-1] += 1
        self.placement = tuple(counts)
        self.restart_left = RESTART_SECONDS

    def run(self, now: int, seconds: int) -> None:
        """Let the job run from `now` on for an interval."""
        if not self.placement or self.end is not None:
            return
        app, gpus = self.application, sum(self.placement)
        self.attained += seconds * gpus
        delay = min(self.restart_left, seconds)
        self.restart_left -= delay
        now, left = now + delay, seconds - delay
        while left > 0 and self.end is None:
            local, added = self.split(gpus)
            step, sync = app.step_seconds(self.placement, local)
            self.observe(gpus, local, step, sync)
            speed = app.gain(gpus * local * (added + 1), self.epoch) / (step + (step - sync) * added)
            goal = app.progress_after(self.epoch + 1)
            if self.progress + speed * left < goal:
                self.progress += speed * left
                self.advanced()
                return
            spent = round((goal - self.progress) / speed)
            self.epoch, self.progress = self.epoch + 1, goal
            now, left = now + spent, left - spent
            if self.epoch >= app.epochs:
                self.end = now
            else:
                self.advanced()

    def split(self, gpus: int) -> tuple[int, int]:
        """Return the batch on a GPU at a time, and how many are added up besides the last: of the batch asked for."""
        return self.application.split(self.batch, gpus)

    def observe(self, gpus: int, local: int, step: float, sync: float) -> None:
        """Learn from a step; a job of fixed batch learns nothing."""

    def advanced(self) -> None:
        """Choose again after an epoch or an interval; a job of fixed batch does not."""
