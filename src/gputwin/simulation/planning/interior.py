"""Linear programs that share GPUs of several models among jobs, solved to a point in the middle of all optima.

Mehrotra's predictor–corrector method. Such programs have many optima (a job that nobody competes with may run anywhere);
a vertex would give it one GPU model and leave the rest idle, an interior point spreads it evenly over all optima. The
normal equations are eliminated job by job, so that a solve takes time linear in the number of jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gputwin.simulation.planning.elimination import Elimination, SharingProgram, Solution
from gputwin.simulation.planning.products import Floats, dot

TOLERANCE = 1e-8
MOST_STEPS = 60
_SHORTEN = 0.995
"""Share of the way to the boundary that a step takes."""
_STALLED, _DAMPING = 1e-8, 1e-11
"""A step this short leads nowhere: rounding has made the equations singular, and a little on their diagonal mends that."""


@dataclass(frozen=True)
class _Point:
    """A value for each unknown: shares, surplus of rate, unused time, unused GPUs."""

    x: Floats
    s: Floats
    u: Floats
    w: Floats


@dataclass(frozen=True)
class _Rows:
    """A value for each constraint: rate and time of each job, GPUs of each model."""

    rate: Floats
    time: Floats
    gpus: Floats


def solve(program: SharingProgram, tolerance: float = TOLERANCE) -> Solution:
    """Return an optimal point of the program, as central as the method leaves it."""
    scaled, unit = _scaled(program)
    method = _Method(scaled)
    with np.errstate(all="ignore"):
        shares, level, converged = method.run(tolerance)
    return Solution(shares, level * unit, converged)


def _scaled(program: SharingProgram) -> tuple[SharingProgram, float]:
    """Return the program with rates of at most 1 and levels of at most 1, and what one unit of its level is."""
    top = program.rate.max(axis=1)
    level = program.level / top
    unit = float(level.max()) or 1.0
    return (
        replace(
            program,
            rate=program.rate / top[:, None],
            level=level / unit,
            least=program.least / top,
            level_gain=1.0 if program.level_gain else 0.0,
        ),
        1.0 / unit,
    )


class _Method:
    """The unknowns as one vector [x, s, u, w] and the level beside it; products, elimination and steps."""

    def __init__(self, p: SharingProgram) -> None:
        self.p = p
        self.jobs, self.models = p.rate.shape
        self.gpus = p.gpus[:, None]
        self.elimination = Elimination(p)
        sizes = np.cumsum([self.jobs * self.models, self.jobs, self.jobs])
        self.cut = [int(s) for s in sizes]
        self.size = self.cut[2] + self.models
        self.b = _Rows(p.least, np.ones(self.jobs), p.capacity)
        self.c = np.concatenate([-p.gain.ravel(), np.zeros(self.size - self.cut[0])])

    def split(self, flat: Floats) -> _Point:
        """Return the parts of a vector."""
        a, b, c = self.cut
        return _Point(flat[:a].reshape(self.jobs, self.models), flat[a:b], flat[b:c], flat[c:])

    def times(self, flat: Floats, level: float) -> _Rows:
        """Return the left sides of the constraints."""
        v = self.split(flat)
        rate = (self.p.rate * v.x).sum(axis=1) - self.p.level * level - v.s
        return _Rows(rate, v.x.sum(axis=1) + v.u, (self.gpus * v.x).sum(axis=0) + v.w)

    def transposed(self, y: _Rows) -> Floats:
        """Return the product of the transposed matrix with prices, without the level's column."""
        x = self.p.rate * y.rate[:, None] + y.time[:, None] + self.gpus * y.gpus
        return np.concatenate([x.ravel(), -y.rate, y.time, y.gpus])

    def prices(self, r: _Rows, level: float) -> tuple[_Rows, float]:
        """Return prices y and a change of level τ with A D Aᵀ y − level τ = r and −levelᵀ y = `level`."""
        rate, time, gpus, change = self.elimination.solve(r.rate, r.time, r.gpus, level)
        return _Rows(rate, time, gpus), change

    def run(self, tolerance: float) -> tuple[Floats, float, bool]:
        """Return shares, level and whether they are optimal."""
        x, level, y, z = self.start()
        for _ in range(MOST_STEPS):
            primal = _minus(self.b, self.times(x, level))
            dual = self.c - self.transposed(y) - z
            dual_level = -self.p.level_gain + dot(self.p.level, y.rate)
            gap = dot(x, z)
            off = max(np.abs(primal.rate).max(), np.abs(primal.time).max(), np.abs(primal.gpus).max())
            worth = self.p.level_gain * level - dot(self.c, x)
            is_feasible = off <= tolerance and max(np.abs(dual).max(), abs(dual_level)) <= tolerance
            if is_feasible and gap <= tolerance * (1.0 + abs(worth)):
                return self.split(x).x, level, True
            d = x / z
            for damping in (0.0, _DAMPING):
                weights = self.split(d)
                self.elimination.factor(weights.x, weights.s, weights.u, weights.w, damping)
                dx, _, _, dz = self.step(d, z, primal, dual, dual_level, -x * z)
                ahead = dot(x + _longest(x, dx) * dx, z + _longest(z, dz) * dz)
                closed = ahead / gap
                target = closed * closed * closed * gap / self.size
                dx, dlevel, dy, dz = self.step(d, z, primal, dual, dual_level, target - x * z - dx * dz)
                step_x, step_z = (min(1.0, _SHORTEN * _longest(a, b, 1e30)) for a, b in ((x, dx), (z, dz)))
                if min(step_x, step_z) > _STALLED:
                    break
            if not np.isfinite(step_x * step_z * dlevel):
                break
            x, level = x + step_x * dx, level + step_x * dlevel
            y = _Rows(y.rate + step_z * dy.rate, y.time + step_z * dy.time, y.gpus + step_z * dy.gpus)
            z = z + step_z * dz
        return self.split(x).x, level, False

    def step(
        self, d: Floats, z: Floats, primal: _Rows, dual: Floats, dual_level: float, products: Floats
    ) -> tuple[Floats, float, _Rows, Floats]:
        """Return the step of Newton's method that changes x · z by `products` and removes the residuals."""
        inner = products / z - d * dual
        dy, dlevel = self.prices(_minus(primal, self.times(inner, 0.0)), dual_level)
        dz = dual - self.transposed(dy)
        return products / z - d * dz, dlevel, dy, dz

    def start(self) -> tuple[Floats, float, _Rows, Floats]:
        """Return a starting point inside: half of the time used, prices of a like size."""
        p = self.p
        share = min(0.5, 0.5 * float(p.capacity.sum()) / float(p.gpus.sum())) / self.models
        x = np.full((self.jobs, self.models), share)
        rate = (p.rate * x).sum(axis=1)
        spare = np.maximum(1.0 - x.sum(axis=1), 0.1)
        free = np.maximum(p.capacity - (self.gpus * x).sum(axis=0), 0.1)
        surplus = np.maximum(rate - p.least, 0.1 * share)
        flat = np.concatenate([x.ravel(), surplus, spare, free])
        mu = max(1.0, float(np.abs(self.c).max())) * share
        return flat, 0.0, _Rows(np.zeros(self.jobs), np.zeros(self.jobs), np.zeros(self.models)), mu / flat


def _longest(values: Floats, change: Floats, most: float = 1.0) -> float:
    """Return how far along `change` the values stay at least 0."""
    falls = change < 0
    return min(most, float((-values[falls] / change[falls]).min())) if falls.any() else most


def _minus(a: _Rows, b: _Rows) -> _Rows:
    return _Rows(a.rate - b.rate, a.time - b.time, a.gpus - b.gpus)
