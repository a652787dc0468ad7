"""Phase-type distributions from moments: the usual stand-ins for a service or arrival time of known variation."""

from __future__ import annotations

import math

from gputwin.core.errors import UserError
from gputwin.queueing.distributions import Constant, Distribution, ErlangMixture, Hyperexponential, exponential

_MOST_STAGES = 200


def from_two_moments(mean: float, squared_variation: float) -> Distribution:
    """Return a distribution of this mean and squared coefficient of variation.

    Constant for 0, a mixture of Erlang distributions of k − 1 and k stages below 1, exponential at 1, hyperexponential
    with balanced means above (Tijms, A First Course in Stochastic Models, 2003, appendix B).
    """
    if mean <= 0 or squared_variation < 0 or not math.isfinite(squared_variation):
        raise UserError("a mean must be positive and a squared variation at least 0 and finite")
    if squared_variation < 1 / _MOST_STAGES:
        return Constant(mean)
    if math.isclose(squared_variation, 1.0):
        return exponential(mean)
    if squared_variation < 1:
        k = math.ceil(1 / squared_variation)
        fewer = (k * squared_variation - math.sqrt(k * (1 + squared_variation) - k * k * squared_variation)) / (
            1 + squared_variation
        )
        fewer = min(max(fewer, 0.0), 1.0)
        return ErlangMixture(k, fewer, mean / (k - fewer))
    first = (1 + math.sqrt((squared_variation - 1) / (squared_variation + 1))) / 2
    return Hyperexponential((first, 1 - first), (mean / (2 * first), mean / (2 * (1 - first))))


def from_three_moments(first: float, second: float, third: float) -> Hyperexponential | None:
    """Return the hyperexponential of two branches with these moments; None where there is none.

    Whitt, "Approximating a Point Process by a Renewal Process, I", 1982, section 3: it exists where the variation is
    above 1 and m1·m3 ≥ 1.5·m2².
    """
    if second <= 2 * first**2 * (1 + 1e-12) or first * third < 1.5 * second**2:
        return None
    # The branches' means are the roots of a·t² + b·t + c, from moments divided by n!.
    a, b = second / 2 - first**2, first * second / 2 - third / 6
    c = first * third / 6 - (second / 2) ** 2
    root = b * b - 4 * a * c
    if root <= 0:
        return None
    long = (-b + math.sqrt(root)) / (2 * a)
    short = (-b - math.sqrt(root)) / (2 * a)
    share = (first - short) / (long - short)
    if not (short > 0 and 0 < share < 1):
        return None
    return Hyperexponential((1 - share, share), (short, long))
