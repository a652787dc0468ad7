"""How many jobs a ScaledJob starts: KEDA's strategies. Source: keda.sh, "ScaledJob specification", scalingStrategy."""

from __future__ import annotations

from dataclasses import dataclass

STRATEGIES = ("default", "custom", "accurate", "eager")


@dataclass(frozen=True, slots=True)
class JobStrategy:
    """How jobs that run or wait for a node count against the queue."""

    name: str = "default"
    """default: queue − running; custom; accurate: the queue holds no running jobs; eager: as many as there is room for."""
    queue_deduction: int | None = None
    """custom: taken off the queue."""
    running_share: float | None = None
    """custom: share of the running jobs taken off the queue; None: the default strategy is used."""

    def __post_init__(self) -> None:
        if self.name not in STRATEGIES:
            raise ValueError(f"a strategy is one of {', '.join(STRATEGIES)}, not '{self.name}'")


def new_jobs(
    strategy: JobStrategy, wanted: int, running: int, pending: int, maximum: int, asked: int = 1
) -> tuple[int, int]:
    """Return the most jobs to start, and how many are asked for, by the strategy alone."""
    if strategy.name == "accurate":
        # Pending jobs have not taken their message yet; running ones have.
        return min(wanted - pending, maximum - running), asked
    if strategy.name == "eager":
        return min(maximum - running - pending, wanted), maximum
    if strategy.name == "custom" and strategy.running_share is not None:
        deduction = strategy.queue_deduction or 0
        return min(wanted - deduction - int(running * strategy.running_share), maximum), asked
    return wanted - running, asked


def jobs_to_start(
    strategy: JobStrategy, wanted: int, running: int, pending: int, minimum: int, maximum: int, asked: int = 1
) -> tuple[int, int]:
    """Return the most jobs to start and how many are asked for; fewer running than the minimum are topped up first."""
    if minimum > 0 and running < minimum:
        return minimum - running, minimum - running
    most, asked = new_jobs(strategy, wanted, running - minimum if minimum > 0 else running, pending, maximum, asked)
    return max(0, most), asked
