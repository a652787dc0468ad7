"""What is free on each node and device of a fleet while tasks with GPU shares are placed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.optimization.placement.problem import Ints

AMOUNTS = ("cpu_milli", "memory_mib")
_PLENTY = 1 << 50


@dataclass
class Fleet:
    """What is free on each node and device while tasks are placed."""

    free: Ints
    devices: Ints
    capacity: Ints
    gpu_capacity: Ints

    @classmethod
    def of(cls, nodes: pl.DataFrame) -> Fleet:
        """Return the empty nodes."""
        columns = [nodes[c].cast(pl.Int64).fill_null(_PLENTY).to_numpy() for c in AMOUNTS]
        free = np.column_stack(columns).astype(np.int64)
        count = nodes["gpu_count"].to_numpy()
        devices = np.where(np.arange(count.max()) < count[:, None], WHOLE_GPU_MILLI, 0).astype(np.int64)
        return cls(free, devices, np.maximum(free, 1), np.maximum(count * WHOLE_GPU_MILLI, 1).astype(np.int64))

    def best(self, amounts: Ints, gpus: int, milli: int, able: Any) -> int | None:
        """Return the node on which the task strands least: where GPUs do not outlast CPU and memory; then the fullest."""
        fine = (self.free >= amounts).all(axis=1)
        if able is not None:
            fine &= able
        if gpus:
            fine &= (self.devices >= milli).sum(axis=1) >= gpus
        rows = np.flatnonzero(fine)
        if not rows.size:
            return None
        gpu_left = (self.devices[rows].sum(axis=1) - gpus * milli) / self.gpu_capacity[rows]
        rest = ((self.free[rows] - amounts) / self.capacity[rows]).min(axis=1)
        score = np.maximum(gpu_left - rest, 0.0) + 0.3 * gpu_left
        if gpus and milli < WHOLE_GPU_MILLI:
            # A share goes beside others: opening a whole device is what later gangs pay for.
            tight = np.where(self.devices[rows] >= milli, self.devices[rows], 2 * WHOLE_GPU_MILLI).min(axis=1)
            score = score + (tight - milli) / WHOLE_GPU_MILLI
        return int(rows[np.argmin(score)])

    def put(self, row: int, amounts: Ints, gpus: int, milli: int) -> tuple[int, ...]:
        """Return the devices taken: the fullest that hold the task."""
        devices = self.devices[row]
        chosen = tuple(int(d) for d in np.argsort(devices, kind="stable") if devices[d] >= milli)[:gpus]
        self.devices[row, list(chosen)] -= milli
        self.free[row] -= amounts
        return chosen

    def take_back(self, row: int, amounts: Ints, devices: tuple[int, ...], milli: int) -> None:
        """Free what a task held on a node."""
        self.devices[row, list(devices)] += milli
        self.free[row] += amounts
