"""How fast jobs run on n GPUs: curves of six measured applications, or one power law for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gputwin.simulation.elasticity.efficiency import GPUS_PER_NODE
from gputwin.simulation.elasticity.goodput import BatchLimits, Goodput
from gputwin.simulation.elasticity.throughput import Floats, StepTime


@dataclass(frozen=True)
class Profile:
    """An application: its step times, the batch it keeps where it may not change it, and its batches where it may.

    `noise` is the gradient's variance over its square at the initial batch, the median over epochs.
    """

    name: str
    steps: StepTime
    batch: int
    limits: BatchLimits
    noise: float


PROFILES = (
    Profile("bert", StepTime(0.171, 0.0588, 1.37, 0.0109, 0.315, 5.27e-5, 2.03), 96, BatchLimits(12, 384, 4, 12), 64.5),
    Profile(
        "cifar10",
        StepTime(0.015, 7.39e-4, 0.126, 0.00264, 0.0392, 9.58e-6, 2.52),
        1024,
        BatchLimits(128, 4096, 32, 1024),
        38.2,
    ),
    Profile(
        "deepspeech2",
        StepTime(0.264, 0.0262, 0.716, 0.00999, 0.226, 2.33e-5, 2.13),
        160,
        BatchLimits(20, 640, 10, 80),
        1266.0,
    ),
    Profile(
        "imagenet",
        StepTime(0.062, 0.00454, 0.311, 0.00645, 0.091, 3.43e-6, 2.86),
        1600,
        BatchLimits(200, 12800, 20, 200),
        56.9,
    ),
    Profile(
        "ncf",
        StepTime(0.0069, 7.09e-7, 0.0145, 5.15e-4, 0.00413, 8.01e-6, 1.0),
        4096,
        BatchLimits(256, 32768, 32, 32768),
        5.07e4,
    ),
    Profile("yolov3", StepTime(0.18, 0.0258, 0.755, 0.0107, 0.16, 5.95e-5, 1.12), 64, BatchLimits(8, 512, 4, 8), 69.2),
)
"""Fitted to the steps published with Qiao et al., Pollux, OSDI'21 (`throughput.fit`), three digits; the kept batch is in the
middle of the measured ones; noise by the published gradient statistics."""


def curve(profile: Profile, most: int, *, adapts: bool) -> Floats:
    """Return the speed on 0 to `most` GPUs, packed onto nodes of four, against that on one.

    With the same batch on any number, or (`adapts`) with the batch of largest goodput. A job that would be slower on
    more GPUs leaves some idle, so no entry is below the one before.
    """
    gpus = np.arange(1, most + 1, dtype=np.float64)
    nodes = np.ceil(gpus / GPUS_PER_NODE)
    if adapts:
        speed = Goodput(profile.steps, profile.limits, profile.noise).best(nodes, gpus)[0]
    else:
        speed = 1.0 / profile.steps.step_seconds(nodes, gpus, profile.batch / gpus)
    return np.concatenate([[0.0], np.maximum.accumulate(speed / speed[0])])


def power_law(exponent: float, most: int) -> Floats:
    """Return n to the power of `exponent` for 0 to `most` GPUs."""
    return np.arange(most + 1, dtype=np.float64) ** exponent


def curves(most: int, *, adapts: bool, exponent: float | None = None) -> Floats:
    """Return the table [kind of job, GPUs]: the six profiles, or one power law."""
    if exponent is not None:
        return power_law(exponent, most)[None, :]
    return np.array([curve(profile, most, adapts=adapts) for profile in PROFILES])
