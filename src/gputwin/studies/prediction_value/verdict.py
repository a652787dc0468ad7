"""What the runs say about predictions, in words: each sentence follows from the interval it quotes."""

from __future__ import annotations

from gputwin.core.units import format_duration, percent
from gputwin.studies.prediction_value.study import FIFO, NOISE, ORACLE, PredictionValue, RuleOutcome

_NO_WAIT_SECONDS = 1.0
_MOST_OF_IT = 0.9
"""Share of the gain from which on better predictions can add little."""


def verdict(value: PredictionValue) -> str:
    """Return whether knowing durations, and predicting them, shortens waits on this cluster."""
    fifo, oracle = value.of(FIFO), value.of(ORACLE)
    if max(o.mean_wait_seconds for o in value.outcomes) < _NO_WAIT_SECONDS:
        return "Jobs hardly wait on this cluster, so no order of jobs can shorten their waits."
    tested, best = _tested(value), _best(value)
    said = f"{_answer(oracle, best)} Knowing all durations, shortest-job-first {_effect(fifo, oracle)}."
    if best is not None:
        said += f" By {best.rule}, the best of {len(tested)} models here, it {_effect(fifo, best)}."
    if value.load > 1:
        said += (
            f" The jobs offer {value.load:.2f} times what the cluster has: waits grow with the length of the trace, and so "
            "do these differences."
        )
    return said


def short_verdict(value: PredictionValue) -> str:
    """Return the answer and the mean waits behind it, without intervals."""
    fifo, oracle = value.of(FIFO), value.of(ORACLE)
    if max(o.mean_wait_seconds for o in value.outcomes) < _NO_WAIT_SECONDS:
        return verdict(value)
    best = _best(value)
    waits = f"{format_duration(fifo.mean_wait_seconds)} in order of arrival"
    if best is not None:
        waits += f", {format_duration(best.mean_wait_seconds)} shortest first by the {best.rule} model"
    known = format_duration(oracle.mean_wait_seconds)
    return f"{_answer(oracle, best)} The mean wait is {waits}, {known} shortest first with all durations known."


def _best(value: PredictionValue) -> RuleOutcome | None:
    """Return the model whose predictions give the shortest mean wait."""
    return min(_tested(value), key=lambda o: o.mean_wait_seconds, default=None)


def _tested(value: PredictionValue) -> list[RuleOutcome]:
    return [o for o in value.outcomes if o.rule not in (FIFO, ORACLE) and not o.rule.startswith(NOISE)]


def _answer(oracle: RuleOutcome, best: RuleOutcome | None) -> str:
    """Return whether better predictions than those tested would help, in one plain sentence."""
    if not oracle.is_shorter:
        return "Better predictions of durations would not help: knowing them all is not proven to shorten waits here."
    if best is None or best.gain_kept is None:
        return "Knowing durations would help."
    part = percent(best.gain_kept)
    if best.gain_kept > 1:
        more = (
            f"predictions of the {best.rule} model shorten waits more than knowing all durations ({part} of that gain)"
        )
        return f"Better predictions would help little: {more}."
    kept = f"predictions of the {best.rule} model already bring {part} of what knowing all durations would"
    if best.gain_kept >= _MOST_OF_IT:
        return f"Better predictions would help little: {kept}."
    return f"Better predictions would help: {kept.replace('already bring', 'bring only')}."


def _effect(fifo: RuleOutcome, other: RuleOutcome) -> str:
    change = f"from {format_duration(fifo.mean_wait_seconds)} to {format_duration(other.mean_wait_seconds)}"
    low, high = other.difference_low_seconds, other.difference_high_seconds
    if low is None or high is None:
        return f"changes the mean wait {change}; the jobs are too few to tell that from chance"
    interval = f"95 % interval of the difference {_signed(low)} to {_signed(high)}"
    if other.is_shorter:
        return f"shortens the mean wait {change} ({interval})"
    if other.is_longer:
        return f"lengthens the mean wait {change} ({interval})"
    return f"changes the mean wait {change}, which may be chance ({interval})"


def _signed(seconds: float) -> str:
    return f"{'−' if seconds < 0 else '+' if seconds > 0 else ''}{format_duration(abs(seconds))}"
