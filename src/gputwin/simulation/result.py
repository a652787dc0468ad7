"""SimulationResult: what became of every job, the cluster over time, a summary, and how it was made."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.atomic import atomic_directory
from gputwin.core.display import Shown
from gputwin.core.errors import InputError, UserError
from gputwin.simulation.checkpoint_writers import writers_of
from gputwin.simulation.completion import completion_parts, completion_totals
from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES
from gputwin.simulation.engine.state.records import WHOLE, Floats
from gputwin.simulation.engine.state.series import FRAGMENTED, RAN, RUNNING_JOBS, USED, WAITED, WAITING_JOBS
from gputwin.simulation.fairness.measures import shares_over_time
from gputwin.simulation.goodput import goodput_of
from gputwin.simulation.held import gpus_held
from gputwin.simulation.metrics import SUMMARY_KEYS, cost_of_nodes, effective_training_time_ratio, summarise
from gputwin.simulation.notebook import run_html, run_lines
from gputwin.simulation.run import Run
from gputwin.simulation.scenario import Scenario, scenario_of
from gputwin.simulation.scenario_files import seen_from, seen_from_here
from gputwin.simulation.segments import (
    capacity_over_time,
    gpus_of_nodes,
    has_changes,
    placements_of,
    segments_of,
    stops_by_reason,
    with_lives,
)
from gputwin.simulation.use import unused, unused_over_time
from gputwin.simulation.waits import job_times

RUN_FILE = "run.json"
SCENARIO_FILE = "scenario.yaml"
OUTCOMES = ("waiting", "running", "finished", "never_fits", "lost", "gave_up")
_FRAMES = ("jobs", "segments", "series", "placements", "nodes", "groups")
_RESOURCES = ("cpu", "memory", "disk", "rdma")


@dataclass(frozen=True, repr=False)
class SimulationResult(Shown):
    """One run. `jobs` in order of submission; `segments` who ran when and how fast; `placements` where the instances of
    each segment ran; `groups` the task groups of each job shape with what one instance asks for.
    """

    jobs: pl.DataFrame
    segments: pl.DataFrame
    series: pl.DataFrame
    placements: pl.DataFrame
    nodes: pl.DataFrame
    groups: pl.DataFrame
    summary: dict[str, Any]
    manifest: dict[str, Any]

    def _title(self) -> str:
        m = self.manifest
        return f"Run of {self.summary['jobs']:,} jobs on {m['cluster']} ({m['nodes']:,} nodes, {m['gpus']:,} GPUs)"

    def _lines(self) -> list[str]:
        return run_lines(self)

    def _repr_html_(self) -> str:
        """Return the run as a notebook shows it."""
        return run_html(self)

    @property
    def scenario(self) -> Scenario:
        """Return the scenario that gives this run again."""
        described = self.manifest.get("scenario")
        if described is None:
            raise UserError("the run does not say what it was made from; make it again with: gputwin simulate")
        return scenario_of(described)

    def save(self, path: Path) -> Path:
        """Write the run to the directory `path`, all or nothing."""
        with atomic_directory(path, marker=RUN_FILE) as folder:
            for name in _FRAMES:
                getattr(self, name).write_parquet(folder / f"{name}.parquet", compression_level=1)
            manifest = self.manifest
            if "scenario" in manifest:
                described = seen_from(self.scenario, path)
                manifest = {**manifest, "scenario": described.to_data()}
                (folder / SCENARIO_FILE).write_text(described.to_yaml(), encoding="utf-8")
            text = json.dumps({"summary": self.summary, "manifest": manifest}, indent=1, ensure_ascii=False)
            (folder / RUN_FILE).write_text(text + "\n", encoding="utf-8")
        return path

    @classmethod
    def open(cls, path: Path) -> SimulationResult:
        """Return the run saved in the directory `path`."""
        try:
            summary, manifest = saved_record(path)
            frames = {name: pl.read_parquet(path / f"{name}.parquet") for name in _FRAMES}
            found = cls(**frames, summary=summary, manifest=manifest)
        except (OSError, ValueError, KeyError, pl.exceptions.PolarsError) as error:
            why = f"it has no {Path(error.filename).name}" if isinstance(error, FileNotFoundError) else str(error)
            why = "a file, not a folder" if path.is_file() else why
            raise InputError(
                f"not a saved run ({why})", file=path, remedy="make one with: gputwin simulate -o DIR"
            ) from None
        if missing := [key for key in SUMMARY_KEYS if key not in found.summary]:
            by = dict(found.manifest.get("versions") or {}).get("gputwin", "unknown")
            raise InputError(
                f"made by another version of gputwin ({by}): its summary lacks {missing[0]}",
                file=path,
                remedy=f"make it again: gputwin simulate {path / SCENARIO_FILE} -o DIR",
            )
        return found


def saved_record(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return summary and manifest of the run saved in `folder`, its scenario as seen from the working directory."""
    data = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    summary, manifest = data["summary"], data["manifest"]
    if "scenario" in manifest:
        manifest = {**manifest, "scenario": seen_from_here(scenario_of(manifest["scenario"]), folder).to_data()}
    return summary, manifest


def result_of(
    run: Run, *, fingerprint: str = "", sla_wait_seconds: float | None = None, use: pl.DataFrame | None = None
) -> SimulationResult:
    """Return frames, summary and manifest of a finished run; `use` says what jobs used of what they asked for."""
    jobs = _jobs(run)
    series = _series(run)
    segments, placements = segments_of(run), placements_of(run)
    gpus = gpus_held(segments, placements)
    nodes = run.cluster.nodes()
    clock = run.world.series.clock
    summary = summarise(
        jobs,
        segments,
        series,
        placements,
        nodes,
        job_seconds_waited=float(clock[WAITED]),
        job_seconds_run=float(clock[RAN]),
        sla_wait_seconds=sla_wait_seconds,
    )
    if has_changes(run):
        summary["stops"] = stops_by_reason(segments)
        summary["effective_training_time_ratio"] = effective_training_time_ratio(
            jobs, _gpu_seconds(jobs.height, segments, gpus)
        )
        summary["completion_parts_nanoseconds"] = completion_totals(jobs)
        summary["completion_parts_seconds"] = completion_parts(summary["completion_parts_nanoseconds"])
        summary["goodput"] = goodput_of(run, segments, gpus)
        summary["checkpoint_writers"] = writers_of(run)
        series = series.with_columns(pl.Series("gpu_capacity", capacity_over_time(run, series["time"].to_numpy())))
    shares = shares_over_time(jobs, segments, series["time"].to_numpy(), _weights(run), gpus)
    summary["tenant_shares"] = None if shares is None else shares.summary
    if shares is not None:
        looked_at = pl.DataFrame({"time": shares.times, "share_error": shares.share_error, "share_jain": shares.jain})
        series = series.join(looked_at.fill_nan(None), on="time", how="left", maintain_order="left")
    prices = [(group.count, group.price_per_hour) for group in run.cluster.groups]
    summary["cost"] = cost_of_nodes(prices, summary["makespan_seconds"])
    summary["tasks_left_out"] = run.workload.left_out
    summary["unused_allocation"] = None
    if use is not None:
        summary["unused_allocation"] = unused(jobs, use)
        over_time = unused_over_time(jobs, use, series["time"].to_numpy(), run.bin_seconds)
        series = series.with_columns(pl.Series(f"{r}_unused", v).fill_nan(None) for r, v in over_time.items())
    return SimulationResult(
        jobs, segments, series, placements, nodes, _groups(run), summary, _manifest(run, fingerprint)
    )


def _weights(run: Run) -> dict[str, float]:
    """Return the weights of tenants that have their own."""
    fairness = run.scheduler.fairness
    return {} if fairness is None else {name: terms.weight for name, terms in fairness.tenants.items()}


def _gpu_seconds(jobs: int, segments: pl.DataFrame, gpus: Floats) -> pl.Series:
    """Return the GPU-seconds that each job held."""
    seconds = (segments["end_time"] - segments["start_time"]).to_numpy()
    return pl.Series(np.bincount(segments["job"].to_numpy(), seconds * gpus, jobs))


def _jobs(run: Run) -> pl.DataFrame:
    records, workload, times = run.world.queue.jobs, run.workload, job_times(run)
    instances = workload.asked_instances
    if instances is None:
        instances = workload.shapes["instances"][records["shape"]]
    frame = pl.DataFrame(
        {
            "job_id": workload.job_ids,
            "tenant": pl.Series(workload.tenants).gather(records["tenant"]),
            "outcome": pl.Series(OUTCOMES).gather(records["outcome"]),
            "submit_time": records["submit"],
            "start_time": times.start,
            "end_time": times.end,
            "duration_seconds": records["duration"],
            "predicted_seconds": records["predicted"],
            "instances": instances.astype(np.int32),
            "gpu_milli": records["gpu_milli"].astype(np.int64),
            "shape": records["shape"],
            "was_running": workload.was_running,
        }
    ).with_columns(
        pl.col("start_time", "end_time").fill_nan(None), pl.Series("wait_seconds", times.wait).fill_nan(None)
    )
    if run.world.knobs.ratings.size or records["priority"].any():
        frame = frame.with_columns(pl.Series("priority", records["priority"]))
    if has_changes(run):
        frame = with_lives(frame, run)
    jct = pl.lit(pl.Series(times.completion).fill_nan(None))
    frame = frame.with_columns(
        jct.alias("jct_seconds"),
        (jct / pl.col("duration_seconds")).fill_nan(None).alias("slowdown"),
        (jct / pl.max_horizontal(pl.col("duration_seconds"), 10.0)).clip(1.0).alias("bounded_slowdown"),
    )
    if run.world.settings["attributes"][0]:
        share = run.world.causes.share + run.world.lives.earlier if has_changes(run) else run.world.causes.share
        started = ~np.isnan(records["start"])
        frame = frame.with_columns(
            pl.Series(f"wait_{name}_seconds", np.where(started, share[:, c], 0.0)) for c, name in enumerate(CAUSE_NAMES)
        )
    return frame


def _series(run: Run) -> pl.DataFrame:
    """Return time-weighted means per bin; allocation as a share of capacity."""
    series, models = run.world.series, run.workload.models
    values, width = series.values, run.bin_seconds
    capacity = _capacity(run)
    columns: dict[str, Any] = {
        "time": series.clock[0] + width * np.arange(values.shape[0]),
        "waiting_jobs": values[:, WAITING_JOBS] / width,
        "running_jobs": values[:, RUNNING_JOBS] / width,
    }
    for k, name in enumerate(_RESOURCES):
        if np.all(run.world.machines.nodes[name] < 1 << 40):
            columns[f"{name}_allocation"] = values[:, USED + k] / width / max(capacity[k], 1)
    gpu = values[:, USED + 4 :] / width
    total = max(capacity[4:].sum(), 1)
    columns["gpu_allocation"] = gpu.sum(axis=1) / total
    for m, model in enumerate(models):
        if capacity[4 + m]:
            columns[f"gpu_allocation_{model or 'unnamed'}"] = gpu[:, m] / capacity[4 + m]
    columns["gpu_fragmentation"] = values[:, FRAGMENTED] / total
    return pl.DataFrame(columns)


def _capacity(run: Run) -> Any:
    """Return the total of CPU, memory, disk, RDMA, then milli-GPU per model, of all nodes whether up or not.

    GPUs that a power cap leaves unused count too.
    """
    nodes = run.world.machines.nodes
    gpus = np.bincount(nodes["model"], gpus_of_nodes(run) * WHOLE, len(run.workload.models))
    return np.concatenate([[nodes[name].sum() for name in _RESOURCES], gpus])


def _groups(run: Run) -> pl.DataFrame:
    """Return shape, request, size and what one instance of the request asks for, one row per group."""
    workload = run.workload
    groups, requests = workload.groups, workload.requests[workload.groups["request"]]
    kinds, kind = np.unique(workload.allowed[groups["request"]], axis=0, return_inverse=True)
    sets = [[m for m, ok in zip(workload.models, row, strict=True) if ok] for row in kinds]
    return pl.DataFrame(
        {
            "shape": np.repeat(np.arange(workload.shapes.size, dtype=np.uint32), workload.shapes["groups"]),
            "request": groups["request"].astype(np.uint32),
            "size": groups["size"],
            **{
                name: requests[name]
                for name in (
                    "cpu",
                    "memory",
                    "disk",
                    "rdma",
                    "gpu_count",
                    "gpu_milli",
                    "gpu_memory",
                    "max_per_node",
                    "application",
                )
            },
            "models": pl.Series(sets, dtype=pl.List(pl.String)).gather(kind),
        }
    )


def _manifest(run: Run, fingerprint: str) -> dict[str, Any]:
    return {
        "trace_fingerprint": fingerprint,
        "cluster": run.cluster.name,
        "nodes": run.cluster.node_count,
        "gpus": run.cluster.gpu_count,
        "scheduler": asdict(run.scheduler),
        "planner": None if run.changes.planning is None else asdict(run.changes.planning),
        "seed": run.seed,
        "tenants_are": run.workload.tenants_are,
        "bin_seconds": run.bin_seconds,
        "gpu_whole_milli": WHOLE,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("gputwin", "numba", "numpy", "polars")},
        },
    }
