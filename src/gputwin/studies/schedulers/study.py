"""All schedulers in all settings: figures, judged directions, the table and its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from gputwin.core.errors import UserError
from gputwin.simulation.batch import Batch, workers_for
from gputwin.studies.schedulers.contenders import BACKFILL, BASELINE, CONTENDERS, FAMILIES, Contender
from gputwin.studies.schedulers.convoy import Convoy, convoy
from gputwin.studies.schedulers.directions import DIRECTIONS, HOLDS, Judgement, judge
from gputwin.studies.schedulers.measure import FIGURES, Measured, measure
from gputwin.studies.schedulers.settings import Setting

COLUMNS = ("policy", "family", *(f.title for f in FIGURES.values()))
TIMES = 7
"""The first columns are times of jobs; the others, and the policy, what they cost the cluster."""


@dataclass(frozen=True)
class Compared:
    """One setting: its runs in the sequence of the contenders, and what of the literature holds."""

    setting: Setting
    runs: tuple[Measured, ...]
    judgements: tuple[Judgement, ...]
    convoys: Convoy | None = None
    """Who waits behind whom under strict order, where that has run."""

    def rows(self) -> list[list[str]]:
        """Return the table's cells."""
        return [
            [
                run.contender.name + (f" ({run.unfinished:,} jobs never end)" if run.unfinished else ""),
                run.contender.family,
                *(f"{run.figures[name]:,.{figure.digits}f}" for name, figure in FIGURES.items()),
            ]
            for run in self.runs
        ]

    def title(self) -> str:
        """Return what ran on what."""
        cluster = self.setting.cluster
        return (
            f"{self.setting.name}: {self.runs[0].duration.size:,} jobs on {cluster.node_count:,} nodes with "
            f"{cluster.gpu_count:,} GPUs, offered load {self.setting.load:.2f}"
        )

    def paragraphs(self) -> dict[str, str]:
        """Return for each family what holds and what does not, and why."""
        said = {family: [j.sentence for j in self.judgements if j.direction.family == family] for family in FAMILIES}
        if self.convoys is not None:
            said[BACKFILL].append(self.convoys.sentence())
        return {family: " ".join(sentences) for family, sentences in said.items() if sentences}

    def verdict(self) -> str:
        """Return how much holds, and which scheduler is best by completion."""
        holds = sum(j.outcome == HOLDS for j in self.judgements)
        best = min(self.runs, key=lambda run: run.figures["mean_completion_hours"])
        return (
            f"{self.setting.name}: {holds} of {len(self.judgements)} published directions hold; shortest mean completion "
            f"under {best.contender.name}, {best.figures['mean_completion_hours']:.2f} h."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the setting's results as plain data."""
        return {
            "setting": self.setting.name,
            "jobs": int(self.runs[0].duration.size),
            "nodes": self.setting.cluster.node_count,
            "gpus": self.setting.cluster.gpu_count,
            "offered_load": self.setting.load,
            "notes": list(self.setting.notes),
            "policies": [run.to_json() for run in self.runs],
            "directions": [
                {
                    "family": j.direction.family,
                    "one": j.direction.one,
                    "other": j.direction.other,
                    "figure": j.direction.figure,
                    "source": j.direction.source,
                    "outcome": j.outcome,
                    "sentence": j.sentence,
                }
                for j in self.judgements
            ],
            "convoys": None if self.convoys is None else self.convoys.to_json(),
        }


def compare_schedulers(
    settings: Sequence[Setting],
    contenders: Sequence[Contender] = CONTENDERS,
    *,
    seed: int = 0,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> list[Compared]:
    """Return the figures of each contender in each setting; all runs of a setting have the same jobs."""
    total = sum(s.trace.tasks.height for s in settings) * len(contenders)
    found = []
    with Batch(executor, workers_for(total) if workers is None else workers) as batch:
        for setting in settings:
            trace, cluster = batch.share(setting.trace), batch.share(setting.cluster)

            def tell(done: int, of: int, name: str = setting.name) -> None:
                progress(f"{name}: simulated {done} of {of} schedulers")

            runs = batch.map(measure, [(c, trace, cluster, seed) for c in contenders], tell)
            by_name = {run.contender.name: run for run in runs}
            judged = [j for d in DIRECTIONS if (j := judge(d, by_name)) is not None]
            found.append(Compared(setting, tuple(runs), tuple(judged), _convoys(by_name)))
    return found


def _convoys(runs: Mapping[str, Measured]) -> Convoy | None:
    strict = runs.get("strict")
    if strict is None:
        return None
    return convoy(strict, {name: runs[name] for name in ("conservative", "easy", BASELINE) if name in runs})


def contenders_named(names: Sequence[str]) -> tuple[Contender, ...]:
    """Return the contenders of these names; an unknown one is a user error."""
    known = {c.name: c for c in CONTENDERS}
    for name in names:
        if name not in known:
            raise UserError(f"unknown scheduler '{name}'; known: {', '.join(known)}")
    return tuple(c for c in CONTENDERS if c.name in names)


def tables_markdown(compared: Sequence[Compared]) -> str:
    """Return tables and paragraphs as Markdown."""
    lines: list[str] = []
    for one in compared:
        lines += [f"## {one.title()}", "", *(f"{note}.\n" for note in one.setting.notes), one.verdict(), ""]
        lines += ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
        lines += ["| " + " | ".join(row) + " |" for row in one.rows()]
        for family, text in one.paragraphs().items():
            lines += ["", f"**{family.capitalize()}.** {text}"]
        lines.append("")
    return "\n".join(lines)
