"""One job's wait, run and end as numbers, and the sentences that say them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from gputwin.core.display import Shown
from gputwin.core.units import format_duration, percent
from gputwin.simulation.completion import completion_lines
from gputwin.simulation.explain_stops import size_lines, stop_lines
from gputwin.simulation.neighbours import slow_words
from gputwin.simulation.priority_parts import PriorityParts
from gputwin.simulation.quotas.explain import QuotaLimit, limit_lines


@dataclass(frozen=True, repr=False)
class Explanation(Shown):
    """The story of one job's wait, as numbers; `story()` puts it in words."""

    job_id: str
    tenant: str
    outcome: str
    submit_time: float
    start_time: float | None
    wait_seconds: float | None
    instances: int
    gpus: float
    causes_seconds: dict[str, float]
    could_have_started: dict[str, float | None]
    """Relaxed constraint → seconds after submission; None where it would not have helped."""
    holders: list[dict[str, Any]]
    """Jobs that held GPUs it might have had, by GPU-hours held during its wait."""
    overtaken_by: int
    overtakers: list[dict[str, Any]]
    has_rounds: bool = False
    """A planner, or a policy of sizes, says at rounds who has GPUs."""
    was_running: bool = False
    """It ran when the trace began."""
    priority_at_submit: PriorityParts | None = None
    """What made its priority, under an order that adds factors up."""
    priority_at_start: PriorityParts | None = None
    stops: list[dict[str, Any]] = field(default_factory=list)
    """When and why it was stopped, and which job took its place."""
    displaced: list[dict[str, Any]] = field(default_factory=list)
    """Running jobs whose place it took."""
    sizes: list[dict[str, float]] = field(default_factory=list)
    """On how many GPUs it ran, from when and for how long, where that changed."""
    quota: dict[str, float] | None = None
    """GPUs its tenant may hold at most, and held when it came."""
    quota_limits: list[QuotaLimit] = field(default_factory=list)
    """Limits of ClusterQueues and Cohorts that held it back, the longest first."""
    queues_missing: str = ""
    """The file of queues of the run, where it is not there any more: then their limits are not known."""
    slowed_by_neighbours_seconds: float = 0.0
    neighbours: list[dict[str, Any]] = field(default_factory=list)
    """Jobs that shared a GPU with it, by seconds × share of a GPU, where they slowed it."""
    completion_nanoseconds: dict[str, int] = field(default_factory=dict)
    """The parts of the time from submission to end, in whole nanoseconds: they sum to `completion` exactly."""

    def _title(self) -> str:
        return f"Job {self.job_id}"

    def _lines(self) -> list[str]:
        return self.story()

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain data."""
        return {**asdict(self), "quota_limits": [limit._asdict() for limit in self.quota_limits]}

    def story(self) -> list[str]:
        """Return the explanation in sentences."""
        return [
            *self._wait_story(),
            *slow_words(self.slowed_by_neighbours_seconds, self.neighbours),
            *completion_lines(self.completion_nanoseconds),
        ]

    def _wait_story(self) -> list[str]:
        gpus = _gpus(self.gpus)
        what = f"{self.instances} instance{'s' if self.instances != 1 else ''} with {gpus} in all"
        lines = [f"Job {self.job_id} ({self.tenant}) asked for {what}."]
        if self.wait_seconds is None and self.start_time is not None:
            return [*lines, "It ran when the trace began, and held its place from then on."]
        if self.wait_seconds is None:
            return [*lines, f"It never started: {self.outcome.replace('_', ' ')}."]
        about_stops = [*stop_lines(self.stops, self.displaced), *size_lines(self.sizes)]
        if self.wait_seconds == 0:
            return [*lines, "It started at once.", *about_stops]
        first = (self.start_time or self.submit_time) - self.submit_time
        split = f" in all, {format_duration(first)} of it before it first started" if self.stops else ""
        lines.append(f"It waited {format_duration(self.wait_seconds)}{split}.")
        causes = sorted(((v, k) for k, v in self.causes_seconds.items() if v > 0), reverse=True)
        if causes:
            parts = [f"{format_duration(v)} ({percent(v / self.wait_seconds)}) {self._why(k)}" for v, k in causes]
            lines.append("Of that: " + "; ".join(parts) + ".")
        if self.quota is not None and self.causes_seconds.get("quota_or_fairness"):
            most, held = self.quota["gpus_at_most"], self.quota["gpus_held_at_submission"]
            lines.append(f"Its tenant may hold {most:g} GPUs at most and held {held:g} when it came.")
        lines += limit_lines(self.quota_limits)
        if self.queues_missing:
            lines.append(
                f"Which limit held it back is not known: {self.queues_missing}, which the run was made with, is gone."
            )
        soonest = self.wait_seconds
        for relaxed, after in self.could_have_started.items():
            # What helps no more than something named before it is not worth a sentence.
            if after is not None and after < soonest:
                soonest = after
                when = f"after {format_duration(after)}" if after > 0 else "at once"
                lines.append(f"With {relaxed}, it could have started {when}.")
        if self.overtaken_by:
            lines.append(f"{self.overtaken_by:,} jobs that came later started before it.")
        for when, found in (("was submitted", self.priority_at_submit), ("started", self.priority_at_start)):
            if found is not None:
                lines.append(found.sentence(when))
        if self.holders:
            top = self.holders[0]
            lines.append(
                f"Job {top['job_id']} held most of what it needed: {_gpus(top['gpus'])}, "
                f"{top['gpu_hours']:,.1f} GPU-hours during the wait."
            )
        return lines + about_stops

    def _why(self, cause: str) -> str:
        return _ROUND if self.has_rounds and cause == "quota_or_fairness" else _WORDS[cause]


_ROUND = "until the plan of a round gave it GPUs"


def _gpus(number: float) -> str:
    return f"{number:g} GPU{'' if number == 1 else 's'}"


_WORDS = {
    "behind_other_job": "behind other jobs",
    "quota_or_fairness": "held back by quota or fairness",
    "gpu_shortage": "because too few GPUs were free",
    "gpu_model": "because GPUs were free, but not of a model it allows",
    "cpu_or_memory": "because CPU or memory was short where GPUs were free",
    "fragmentation": "because free GPUs were scattered over nodes (fragmentation)",
    "max_per_node": "because of the per-node limit of its application",
    "rdma": "because network capacity was short",
    "node_startup": "while nodes started",
    "outage": "because nodes were down",
}
