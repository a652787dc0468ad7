"""What a Slurm job asked for, per node: totals of its TRES strings (or older fields) divided by its nodes."""

from __future__ import annotations

import math
from fractions import Fraction

import polars as pl

from gputwin.core.units import CORE_MILLI, MINUTE, parse_slurm_memory, parse_slurm_tres
from gputwin.traces.mig import gpus_of, mig_instance
from gputwin.traces.quality import QualityLog
from gputwin.traces.readers.slurm import fields
from gputwin.traces.sources import Source

_GPU = "gres/gpu"
_RESOURCES = {"cpu", "mem", "node", _GPU}
_ACCOUNTING = ("billing", "energy", "pages", "vmem", "fs/", "ic/")
_TRES = pl.Struct(
    {
        "cpus": pl.Float64,
        "mib": pl.Float64,
        "nodes": pl.Float64,
        "gpus": pl.Float64,
        "gpu_milli": pl.Float64,
        "gpu_memory_mib": pl.Float64,
        "models": pl.String,
        "others": pl.String,
    }
)
_MEMORY = pl.Struct({"mib": pl.Float64, "per": pl.String})


def _tres(text: str) -> dict[str, object]:
    """Return the amounts of a TRES string that the trace has columns for, and the names of those it has not."""
    amounts = parse_slurm_tres(text)
    typed = {name.partition(":")[2]: n for name, n in amounts.items() if name.startswith(_GPU + ":") and n}
    parts = [(math.ceil(n), part) for name, n in typed.items() if (part := mig_instance(name))]
    # The untyped count is the total of the typed ones where a site tracks both.
    count = amounts.get(_GPU, sum(typed.values(), Fraction(0)))
    divided = gpus_of(max(0, math.ceil(count) - sum(n for n, _ in parts)), parts) if parts else None
    models = {part.model if (part := mig_instance(name)) else name for name in typed}
    others = [name for name in amounts if name not in _RESOURCES and not name.startswith((_GPU + ":", *_ACCOUNTING))]
    return {
        "cpus": _positive(amounts.get("cpu")),
        "mib": _positive(amounts.get("mem")),
        "nodes": _positive(amounts.get("node")),
        "gpus": float(count) if divided is None else float(divided.count),
        "gpu_milli": divided and divided.milli,
        "gpu_memory_mib": divided and divided.memory_mib,
        "models": "|".join(sorted(filter(None, models))) or None,
        "others": ", ".join(sorted(others)) or None,
    }


def _positive(amount: Fraction | None) -> float | None:
    """Return the amount; zero stands for "whatever the node has", which is unknown."""
    return float(amount) if amount else None


def _memory(text: str) -> dict[str, object]:
    mib, per = parse_slurm_memory(text)
    return {"mib": _positive(mib), "per": per}


def with_request(jobs: pl.DataFrame, source: Source, quality: QualityLog) -> pl.DataFrame:
    """Return the records with the canonical columns of who asked and for what."""
    for name in ("ReqTRES", "AllocTRES"):
        jobs = jobs.with_columns(fields.mapped(jobs, name, _tres, _TRES, "a list of resources", source, quality))
    jobs = jobs.with_columns(fields.mapped(jobs, "ReqMem", _memory, _MEMORY, "a size", source, quality))
    for name in ("ReqCPUS", "AllocCPUS", "NCPUS", "NNodes", "AllocNodes", "ReqNodes", "Priority", "Restarts"):
        jobs = jobs.with_columns(fields.numbers(jobs, name, source, quality))
    jobs = jobs.with_columns(
        fields.numbers(jobs, "TimelimitRaw", source, quality), fields.durations(jobs, "Timelimit", source, quality)
    )
    _report_others(jobs, quality)
    return _rounded(_totals(jobs), quality).with_columns(
        pl.col("JobName").alias("application"),
        pl.col("User").alias("user"),
        pl.coalesce("Account", "Partition").alias("tenant"),
        pl.col("QOS").alias("qos"),
        pl.col("Priority").alias("priority"),
        pl.coalesce(pl.col("TimelimitRaw") * MINUTE, "Timelimit").alias("requested_seconds"),
        pl.coalesce(pl.col("ReqTRES", "AllocTRES").struct.field("gpu_milli")).alias("gpu_milli"),
        pl.coalesce(pl.col("ReqTRES", "AllocTRES").struct.field("gpu_memory_mib")).alias("gpu_memory_mib"),
        pl.col("ReqTRES").struct.field("models").alias("gpu_models_allowed"),
        pl.col("AllocTRES").struct.field("models").alias("gpu_model"),
    )


def _totals(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the records with the job's nodes as `instances` and its totals, from the best field that gives them."""
    asked, given = pl.col("ReqTRES").struct, pl.col("AllocTRES").struct
    counts = (pl.when(pl.col(c) > 0).then(c) for c in ("ReqCPUS", "AllocCPUS", "NCPUS"))
    cpus = pl.coalesce(asked.field("cpus"), *counts, given.field("cpus"))
    # The nodes it got come first: a job that only counts its tasks "asks" for one node however many it needs.
    nodes = pl.coalesce(
        pl.when(pl.col("AllocNodes") > 0).then("AllocNodes"),
        given.field("nodes"),
        pl.when(pl.col("NNodes") > 0).then("NNodes"),
        asked.field("nodes"),
        pl.when(pl.col("ReqNodes") > 0).then("ReqNodes"),
        pl.lit(1.0),
    )
    per = pl.col("ReqMem").struct.field("per")
    times = pl.when(per == "cpu").then(cpus).when(per == "node").then(nodes).otherwise(1.0)
    return jobs.with_columns(
        nodes.alias("instances"),
        (cpus * CORE_MILLI).alias("cpu_milli"),
        pl.coalesce(asked.field("mib"), pl.col("ReqMem").struct.field("mib") * times, given.field("mib")).alias(
            "memory_mib"
        ),
        pl.coalesce(asked.field("gpus"), given.field("gpus")).alias("gpu_count"),
    )


def _rounded(jobs: pl.DataFrame, quality: QualityLog) -> pl.DataFrame:
    """Return the totals as whole amounts per node, rounded up and counted where they do not divide (rule F10)."""
    for name in ("cpu_milli", "memory_mib", "gpu_count"):
        each = jobs[name] / jobs["instances"]
        uneven = jobs.filter(each != each.ceil())
        examples = uneven.select("_row", "JobID", name, "instances")
        quality.find("F10", "tasks", uneven.height, detail=f"{name} over its nodes", examples=examples)
        jobs = jobs.with_columns(each.ceil().alias(name))
    return jobs


def _report_others(jobs: pl.DataFrame, quality: QualityLog) -> None:
    asked = pl.col("ReqTRES").struct.field("others")
    found = jobs.filter(asked.is_not_null()).select("_row", "JobID", asked)
    names = ", ".join(found["others"].unique().sort())
    quality.find("F21", "tasks", found.height, detail=names[:200], examples=found)
