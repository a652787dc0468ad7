"""Words for small schedules that are worked out by hand: jobs, and what became of them."""

from __future__ import annotations

from tests.oracles.reference import Ask, Job, Outcome


def gpus(count: int, milli: int = 1000, **more: object) -> Ask:
    """Return a request for `count` GPUs, `milli` of each."""
    return Ask(count, milli, **more)


def job(
    submit: float, duration: float, ask: Ask, size: int = 1, *, predicted: float | None = None, priority: int = 0
) -> Job:
    """Return a job of `size` equal instances, predicted to take as long as it does unless said otherwise."""
    return gang(submit, duration, (ask, size), predicted=predicted, priority=priority)


def gang(
    submit: float, duration: float, *groups: tuple[Ask, int], predicted: float | None = None, priority: int = 0
) -> Job:
    """Return a job of several groups."""
    return Job(submit, duration, groups, duration if predicted is None else predicted, priority)


def starts(outcomes: list[Outcome]) -> list[float]:
    """Return when each job started, s."""
    return [outcome.start for outcome in outcomes]


def places(outcomes: list[Outcome]) -> list[list[tuple[int, tuple[int, ...]]]]:
    """Return the (node, devices) of each instance of each job."""
    return [[(spot.node, spot.devices) for spot in outcome.spots] for outcome in outcomes]


def nodes(outcome: Outcome) -> list[int]:
    """Return the node of each instance of a job."""
    return [spot.node for spot in outcome.spots]
