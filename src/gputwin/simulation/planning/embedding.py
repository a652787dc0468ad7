"""The optimum of a program of shares that Gavel's authors would have got.

Such programs have many optima (a job that nobody competes with may run anywhere), and which of them a method returns decides
how soon jobs end. This is the method of ECOS, the authors' solver, for linear constraints: a homogeneous self-dual embedding
with Mehrotra's predictor and corrector and one step length (Domahidi, Chu and Boyd, ECOS: An SOCP Solver for Embedded
Systems, ECC'13, sections III and IV), on equations that are equilibrated first (Ruiz, A Scaling Algorithm to Equilibrate
Both Rows and Columns Norms in Matrices, 2001). The result agrees with ECOS's to five digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gputwin.simulation.planning.elimination import Elimination, SharingProgram, Solution
from gputwin.simulation.planning.products import Floats, dot

TOLERANCE = 1e-8
MOST_STEPS = 60
_SHORTEN = 0.99
"""Share of the way to the boundary that a step takes."""
_LEAST_STEP, _MOST_STEP = 1e-6, 0.999
_LEAST_CENTERING = 1e-4
"""Share of the mean product of slack and price that a step aims at, at least."""
_EQUILIBRATIONS = 3
_STALLED, _DAMPING = 1e-5, 1e-11
"""A step this short leads nowhere: rounding has made the equations singular, and a little on their diagonal mends that."""


@dataclass(frozen=True)
class _Point:
    """A value for each unknown: shares of time (jobs × models) and the level."""

    x: Floats
    level: float

    def plus(self, step: float, change: _Point) -> _Point:
        """Return the point that many steps further."""
        return _Point(self.x + step * change.x, self.level + step * change.level)

    def times(self, other: _Point) -> float:
        """Return the scalar product."""
        return dot(self.x, other.x) + self.level * other.level


@dataclass(frozen=True)
class _Rows:
    """A value for each constraint: shares at least 0 (jobs × models), rate and time of each job, GPUs of each model."""

    share: Floats
    rate: Floats
    time: Floats
    gpus: Floats

    def joined(self) -> Floats:
        """Return all as one vector."""
        return np.concatenate([self.share.ravel(), self.rate, self.time, self.gpus])


def solve_embedded(program: SharingProgram, tolerance: float = TOLERANCE) -> Solution:
    """Return the optimal point of the program at which ECOS arrives."""
    method = _Method(_scaled(program))
    with np.errstate(all="ignore"):
        return method.run(tolerance)


def _scaled(program: SharingProgram) -> SharingProgram:
    """Return the program with rates in units of each job's level; of its highest rate where it has no level."""
    unit = np.where(program.level > 0, program.level, program.rate.max(axis=1))
    return replace(program, rate=program.rate / unit[:, None], level=program.level / unit, least=program.least / unit)


@dataclass(frozen=True)
class _Embedded:
    """A point of the embedding: unknowns, slack and price of each constraint, and the two scales (τ, κ)."""

    point: _Point
    slack: Floats
    price: Floats
    tau: np.float64
    kappa: np.float64

    def step_to(self, step: float, change: _Embedded) -> _Embedded:
        """Return the point that many steps further."""
        return _Embedded(
            self.point.plus(step, change.point),
            self.slack + step * change.slack,
            self.price + step * change.price,
            self.tau + step * change.tau,
            self.kappa + step * change.kappa,
        )

    def longest(self, change: _Embedded) -> float:
        """Return how far along `change` slacks, prices and scales stay at least 0, within the bounds of a step."""
        ratios = [float(-a / b) for a, b in ((self.tau, change.tau), (self.kappa, change.kappa)) if b < 0]
        for values, by in ((self.slack, change.slack), (self.price, change.price)):
            falls = by < 0
            ratios.append(float((-values[falls] / by[falls]).min(initial=np.inf)))
        return min(max(min(ratios), _LEAST_STEP), _MOST_STEP)


class _Method:
    """The program as: minimise cost · v so that G v + slack = right, slack ≥ 0."""

    def __init__(self, p: SharingProgram) -> None:
        self.p = p
        self.jobs, self.models = p.rate.shape
        self.gpus = p.gpus[:, None]
        self.elimination = Elimination(p)
        sizes = np.cumsum([self.jobs * self.models, self.jobs, self.jobs])
        self.cut = [int(s) for s in sizes]
        self.cost = _Point(-p.gain, -p.level_gain)
        self.right = _Rows(np.zeros_like(p.rate), -p.least, np.ones(self.jobs), p.capacity).joined()
        self.row_scale, self.column_scale = self.equilibrate()
        if self.elimination.has_level:
            # Nobody can be raised further than alone on the fastest model.
            self.unit = float((p.rate.max(axis=1)[p.level > 0]).min()) * p.level_gain
        else:
            self.unit = float(p.gain.max())

    def split(self, flat: Floats) -> _Rows:
        """Return the parts of a vector over constraints."""
        a, b, c = self.cut
        return _Rows(flat[:a].reshape(self.jobs, self.models), flat[a:b], flat[b:c], flat[c:])

    def product(self, v: _Point) -> Floats:
        """Return G v."""
        rate = self.p.level * v.level - (self.p.rate * v.x).sum(axis=1)
        return _Rows(-v.x, rate, v.x.sum(axis=1), (self.gpus * v.x).sum(axis=0)).joined()

    def transposed(self, flat: Floats) -> _Point:
        """Return the product of the transposed G with a value for each constraint."""
        z = self.split(flat)
        x = z.time[:, None] + self.gpus * z.gpus - z.share - self.p.rate * z.rate[:, None]
        return _Point(x, dot(self.p.level, z.rate))

    def equilibrate(self) -> tuple[Floats, _Point]:
        """Return factors of rows and columns that bring the largest entry of each near 1."""
        p = self.p
        rows = _Rows(np.ones_like(p.rate), np.ones(self.jobs), np.ones(self.jobs), np.ones(self.models))
        columns = _Point(np.ones_like(p.rate), 1.0)
        for _ in range(_EQUILIBRATIONS):
            inverse = 1.0 / columns.x
            by_row = _Rows(
                inverse / rows.share,
                np.maximum((p.rate * inverse).max(axis=1), p.level / columns.level) / rows.rate,
                inverse.max(axis=1) / rows.time,
                (self.gpus * inverse).max(axis=0) / rows.gpus,
            )
            of_jobs = np.maximum(p.rate / rows.rate[:, None], 1.0 / rows.time[:, None])
            of_shares = np.maximum(np.maximum(of_jobs, 1.0 / rows.share), self.gpus / rows.gpus) * inverse
            of_level = float((p.level / rows.rate).max()) / columns.level or 1.0
            rows = self.split(rows.joined() * np.sqrt(by_row.joined()))
            columns = _Point(columns.x * np.sqrt(of_shares), columns.level * float(np.sqrt(of_level)))
        return rows.joined(), columns

    def factor(self, ratio: Floats, damping: float = 0.0) -> None:
        """Prepare steps for these ratios of slack to price."""
        self.ratio = self.split(ratio)
        self.elimination.factor(self.ratio.share, self.ratio.rate, self.ratio.time, self.ratio.gpus, damping)

    def newton(self, of_unknowns: _Point, of_rows: Floats) -> tuple[_Point, Floats]:
        """Return the solution (v, z) of Gᵀz = `of_unknowns`, G v − ratio · z = `of_rows`."""
        r = self.split(of_rows)
        inner = self.ratio.share * of_unknowns.x - r.share
        rate_right = -r.rate - (self.p.rate * inner).sum(axis=1)
        time_right = r.time - inner.sum(axis=1)
        gpus_right = r.gpus - (self.gpus * inner).sum(axis=0)
        rate, time, gpus, level = self.elimination.solve(rate_right, time_right, gpus_right, -of_unknowns.level)
        moved = self.p.rate * rate[:, None] + time[:, None] + self.gpus * gpus
        x = self.ratio.share * moved + inner
        share = -(moved + of_unknowns.x)
        return _Point(x, level), _Rows(share, rate, -time, -gpus).joined()

    def start(self) -> _Embedded:
        """Return a starting point: least squares for slacks and for prices, both moved inside."""
        self.factor(self.row_scale**2)
        nothing = _Point(np.zeros_like(self.cost.x), 0.0)
        point, against = self.newton(nothing, self.right)
        _, price = self.newton(_Point(-self.cost.x, -self.cost.level), np.zeros_like(self.right))
        slack = _inside(-against * self.row_scale) * self.row_scale
        one = np.float64(1.0)
        return _Embedded(point, slack, _inside(price * self.row_scale) / self.row_scale, one, one)

    def run(self, tolerance: float) -> Solution:
        """Return shares, level and whether they are optimal."""
        at = self.start()
        for _ in range(MOST_STEPS):
            dual = self.transposed(at.price).plus(at.tau, self.cost)
            primal = at.slack + self.product(at.point) - self.right * at.tau
            scales = at.kappa + self.cost.times(at.point) + dot(self.right, at.price)
            gap = dot(at.slack, at.price)
            if self.is_optimal(at, primal, dual, gap, tolerance):
                return Solution(at.point.x / at.tau, at.point.level / at.tau, True)
            mean = (gap + at.kappa * at.tau) / (at.slack.size + 1)
            residuals = primal, dual, scales
            for damping in (0.0, _DAMPING):
                self.factor(at.slack / at.price, damping)
                alone = self.newton(_Point(-self.cost.x, -self.cost.level), self.right)
                ahead = self.direction(at, alone, residuals, 1.0, -at.slack * at.price, -at.kappa * at.tau)
                left = 1.0 - at.longest(ahead)
                centering = min(max(left * left * left, _LEAST_CENTERING), 1.0)
                aim = centering * mean
                products = aim - at.slack * at.price - ahead.slack * ahead.price
                product = aim - at.kappa * at.tau - ahead.kappa * ahead.tau
                change = self.direction(at, alone, residuals, 1.0 - centering, products, product)
                step = _SHORTEN * at.longest(change)
                if step > _STALLED:
                    break
            if not np.isfinite(step * change.tau * change.point.level):
                break
            at = at.step_to(step, change)
        return Solution(at.point.x / at.tau, at.point.level / at.tau, False)

    def is_optimal(self, at: _Embedded, primal: Floats, dual: _Point, gap: float, tolerance: float) -> bool:
        """Return whether constraints, prices and the gap are as good as asked."""
        off_rows = float(np.abs(primal / self.row_scale).max()) / at.tau
        off_shares = float(np.abs(dual.x / self.column_scale.x).max()) / at.tau
        off_level = abs(dual.level) / self.column_scale.level / at.tau
        worth = abs(self.cost.times(at.point)) / at.tau
        closed = gap / (at.tau * at.tau) <= tolerance * (self.unit + worth)
        return bool(max(off_rows, off_shares, off_level) <= tolerance and closed)

    def direction(
        self,
        at: _Embedded,
        alone: tuple[_Point, Floats],
        residuals: tuple[Floats, _Point, float],
        share: float,
        products: Floats,
        product: float,
    ) -> _Embedded:
        """Return Newton's direction that removes that share of the residuals and changes slack · price by `products`.

        `alone`: the direction of unknowns and prices as τ grows; `product`: the change of κ · τ.
        """
        primal, dual, scales = residuals
        wanted = products / at.price
        point, price = self.newton(_Point(-share * dual.x, -share * dual.level), -share * primal - wanted)
        rest = share * scales + product / at.tau + self.cost.times(point) + dot(self.right, price)
        slope = at.kappa / at.tau - self.cost.times(alone[0]) - dot(self.right, alone[1])
        tau = rest / slope
        point, price = point.plus(tau, alone[0]), price + tau * alone[1]
        slack = wanted - at.slack / at.price * price
        return _Embedded(point, slack, price, tau, (product - at.kappa * tau) / at.tau)


def _inside(values: Floats) -> Floats:
    """Return the values raised by as much as makes all of them positive."""
    least = float(values.min())
    return values + 1.0 + max(-_SHORTEN, -least if least <= 0 else -np.inf)
