"""How good forecasts are: errors, skill, coverage, and whether a difference is more than chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.core.rng import stream
from gputwin.forecasting.series import Floats, Integers


def rmse(errors: Floats) -> Floats:
    """Return the root of the mean squared error along the first axis, in the series' unit."""
    return np.asarray(np.sqrt(np.mean(errors**2, axis=0)))


def relative_rmse(actuals: Floats, forecasts: Floats) -> Floats:
    """Return RMSE over the mean of the actual values; NaN where that mean is zero."""
    mean = np.asarray(actuals.mean(axis=0), dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mean != 0, rmse(actuals - forecasts) / mean, np.nan)


def mase(actuals: Floats, forecasts: Floats, history: Floats, season: int = 1) -> Floats:
    """Return the mean absolute error over that of the (seasonal) naive forecast in the history.

    Hyndman and Koehler, "Another look at measures of forecast accuracy", 2006. NaN where the history never changes.
    """
    step = np.abs(history[season:] - history[:-season]).mean(axis=0) if len(history) > season else np.nan
    error = np.abs(actuals - forecasts).mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(step) > 0, error / step, np.nan)


def pinball(actuals: Floats, quantiles: Floats, level: float) -> Floats:
    """Return the mean quantile loss along the first axis (Koenker and Bassett 1978), in the series' unit."""
    gap = actuals - quantiles
    return np.asarray(np.maximum(level * gap, (level - 1) * gap).mean(axis=0))


def skill(errors: Floats, reference: Floats) -> Floats:
    """Return 1 − RMSE over the reference's RMSE: 0 = as good, 1 = perfect, negative = worse."""
    base = rmse(reference)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(base > 0, 1 - rmse(errors) / base, np.where(rmse(errors) > 0, -np.inf, 0.0))


def concentration(errors: Floats, share: float = 0.01) -> Floats:
    """Return the share of the squared error that the worst `share` of bins carry."""
    squared = np.sort(errors**2, axis=0)[::-1]
    worst = max(1, round(share * len(squared)))
    total = squared.sum(axis=0)
    return np.where(total > 0, squared[:worst].sum(axis=0) / np.where(total > 0, total, 1.0), 0.0)


class Interval(NamedTuple):
    """A figure and the interval that holds it with 95 % confidence."""

    value: float
    low: float
    high: float


def block_length(count: int, lead: int) -> int:
    """Return the block of a bootstrap: at least the lead, whose errors overlap, and about the cube root of the count."""
    return int(max(1, min(count // 2, max(2 * lead, round(count ** (1 / 3))))))


def block_resamples(count: int, block: int, resamples: int, seed: int) -> Integers:
    """Return resamples × count rows of a circular block bootstrap (Politis and Romano 1992)."""
    draws = -(-count // block)
    starts = stream(seed, "block bootstrap").integers(0, count, size=(resamples, draws))
    rows = (starts[:, :, None] + np.arange(block)) % count
    return rows.reshape(resamples, -1)[:, :count]


def skill_interval(errors: Floats, reference: Floats, lead: int, *, resamples: int = 400, seed: int = 0) -> Interval:
    """Return the skill of one series' errors against a reference with its block-bootstrap interval."""
    rows = block_resamples(len(errors), block_length(len(errors), lead), resamples, seed)
    value = float(skill(errors, reference))
    ours, theirs = (errors**2)[rows].mean(axis=1), (reference**2)[rows].mean(axis=1)
    known = theirs > 0
    if not known.any() or not np.isfinite(value):
        return Interval(value, value, value)
    drawn = 1 - np.sqrt(ours[known] / theirs[known])
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(value, float(low), float(high))


class Comparison(NamedTuple):
    """A Diebold–Mariano test: mean loss of the first less that of the second, its statistic and two-sided p value."""

    difference: float
    statistic: float
    p_value: float


def diebold_mariano(first: Floats, second: Floats, lead: int) -> Comparison:
    """Return whether two series of errors differ in squared loss by more than chance.

    Diebold and Mariano, "Comparing predictive accuracy", 1995, with the small-sample correction of Harvey, Leybourne
    and Newbold, 1997, Student's t, and Bartlett weights over `lead` − 1 lags and the cube root of the sample.
    """
    from scipy.stats import t

    loss = first**2 - second**2
    count = len(loss)
    mean = float(loss.mean())
    error = float(loss_standard_error(loss, lead))
    if count < 3 or error == 0.0:
        return Comparison(mean, 0.0, 1.0)
    correction = np.sqrt(max(count + 1 - 2 * lead + lead * (lead - 1) / count, 1.0) / count)
    statistic = float(correction * mean / error)
    return Comparison(mean, statistic, float(2 * t.sf(abs(statistic), df=count - 1)))


def loss_standard_error(loss: Floats, lead: int) -> Floats:
    """Return the standard error of means of dependent losses, per column (Newey and West 1987, Bartlett weights)."""
    count = len(loss)
    if count < 2:
        return np.zeros(loss.shape[1:])
    centred = loss - loss.mean(axis=0)
    lags = min(count - 1, max(lead - 1, round(count ** (1 / 3))))
    # All autocovariances at once, through the spectrum.
    size = 1 << int(count + lags).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=0)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, size, axis=0)[: lags + 1] / count
    weights = 1 - np.arange(1, lags + 1) / (lags + 1)
    variance = covariance[0] + 2 * np.tensordot(weights, covariance[1:], axes=1)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0) / count))
