"""Prometheus: results of range queries (`/api/v1/query_range`), such as DCGM's GPU metrics, as usage.

One file per query, or several. A series that names a pod or a job becomes one row per instance: each metric's mean over
the samples, summed over its GPUs or containers. One that names only a machine becomes one row per machine and sample.
Other metrics are kept as series. A query that drops the metric's name (`rate(…)`) is known by its file's name:
`cpu_cores.json`, `memory_bytes.json`, `gpu_percent.json`, `gpu_memory_bytes.json`.

`pod` and `namespace` are the exporter's own where `exported_pod` is there, and `job` is always the scrape job, so none of
them names the workload then. Totals that cAdvisor adds (container "" or "POD") are left out: containers sum to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from gputwin.core.errors import InputError, shorten
from gputwin.traces.document import Item, read_json
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.schema import DEFAULT_ROLE
from gputwin.traces.sources import Source

_MIB = 1 << 20
METRICS: Mapping[str, tuple[str, float]] = {
    "DCGM_FI_DEV_GPU_UTIL": ("gpu_milli", 10.0),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("gpu_milli", 1000.0),
    "nvidia_smi_utilization_gpu_ratio": ("gpu_milli", 1000.0),
    "DCGM_FI_DEV_FB_USED": ("gpu_memory_mib", 1.0),
    "nvidia_smi_memory_used_bytes": ("gpu_memory_mib", 1 / _MIB),
    "container_memory_working_set_bytes": ("memory_mib", 1 / _MIB),
    "container_memory_usage_bytes": ("memory_mib", 1 / _MIB),
    "node_load1": ("load_1min", 1.0),
    "cpu_cores": ("cpu_milli", 1000.0),
    "memory_bytes": ("memory_mib", 1 / _MIB),
    "gpu_percent": ("gpu_milli", 10.0),
    "gpu_memory_bytes": ("gpu_memory_mib", 1 / _MIB),
}
"""Metric, or name of a query's file -> usage column, and what to multiply by."""
JOB_LABELS = ("job_id", "jobid", "slurm_job_id", "slurm_jobid", "hpc_job")
_NODE_LABELS = ("Hostname", "node", "kubernetes_node", "nodename", "host", "instance")
_DEVICE_LABELS = ("gpu", "GPU_I_ID", "device", "UUID", "uuid", "minor_number")
NAMESPACE = "_namespace"
"""Column of the draft that tells pods of one name apart; it goes when usage is attached to a trace's jobs."""
_KEYS = ("job_id", NAMESPACE, "instance_id", "node_id")
_SAMPLES = {
    **dict.fromkeys(("metric", "column", *_KEYS, "device"), pl.String),
    "time": pl.Float64,
    "value": pl.Float64,
}


@dataclass
class _Samples:
    """The samples of all files as columns."""

    columns: dict[str, list[object]] = field(default_factory=lambda: {name: [] for name in _SAMPLES})

    def add(self, labels: Mapping[str, str | None], times: list[float], values: list[float | None]) -> None:
        for name in _SAMPLES:
            if name not in ("time", "value"):
                self.columns[name] += [labels.get(name)] * len(times)
        self.columns["time"] += times
        self.columns["value"] += values


def recognise(source: Source) -> str | None:
    """Return "matrix" where the file starts like the result of a range query."""
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "matrix" if head.startswith(b"{") and b'"resultType"' in head else None


def _read_file(source: Source, samples: _Samples, quality: QualityLog) -> None:
    top = Item.of(source.label, "", read_json(source))
    data = top.child("data") if "data" in top.value else top
    if data.text("resultType") != "matrix":
        raise InputError(
            f"the result is of type '{shorten(data.text('resultType') or 'none')}', not a matrix",
            file=source.label,
            field=data.where("resultType"),
            remedy="export a range query: /api/v1/query_range",
        )
    found = totals = 0
    for item in data.children("result"):
        given = item.child("metric").text_fields()
        times, values = _values(item, quality)
        found += len(times)
        if given.get("container") in ("", "POD"):
            totals += len(times)
            continue
        name = given.get("__name__") or source.name.removesuffix(".json")
        column, factor = METRICS.get(name, (None, 1.0))
        scaled = [None if v is None else v * factor for v in values]
        samples.add({"metric": name, "column": column, **_who(given)}, times, scaled)
    if not found:
        raise InputError("the result has no samples", file=source.label, remedy="widen the query's range")
    quality.read(source.label, found)
    quality.find("F22", source.label, totals, detail="totals over a pod's containers")


def _values(item: Item, quality: QualityLog) -> tuple[list[float], list[float | None]]:
    times: list[float] = []
    values: list[float | None] = []
    for pair in item._list("values"):
        if not (isinstance(pair, list) and len(pair) == 2 and _is_time(pair[0])):
            raise item.wrong("values", f"'{shorten(pair)}' is not a pair of time and value")
        try:
            value = float(pair[1])
        except (TypeError, ValueError):
            raise item.wrong("values", f"'{shorten(pair[1])}' is not a number") from None
        times.append(float(pair[0]))
        # Prometheus writes NaN and +Inf as text.
        values.append(value if abs(value) <= 1e15 else None)
    quality.find("F11", item.file, values.count(None), detail="value")
    return times, values


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1e12


def _who(labels: Mapping[str, str]) -> dict[str, str | None]:
    """Return which job, pod, machine and GPU a series is of."""
    pod, namespace = labels.get("exported_pod"), labels.get("exported_namespace")
    if not pod and "dcgm-exporter" not in labels.get("pod", "") and "node-exporter" not in labels.get("pod", ""):
        pod, namespace = labels.get("pod"), labels.get("namespace")
    node = next((labels[name] for name in _NODE_LABELS if labels.get(name)), None)
    return {
        "job_id": next((labels[name] for name in JOB_LABELS if labels.get(name)), None),
        NAMESPACE: namespace or None,
        "instance_id": pod or None,
        "node_id": node.rsplit(":", 1)[0] if node and node.rsplit(":", 1)[-1].isdigit() else node,
        "device": ",".join(labels[name] for name in _DEVICE_LABELS if labels.get(name)) or labels.get("container"),
    }


def _of_instances(samples: pl.DataFrame) -> pl.DataFrame:
    """Return one row per instance: the mean over time of each metric, summed over devices or containers."""
    each = samples.group_by(*_KEYS, "device", "column", maintain_order=True).agg(
        pl.col("value").mean(), pl.col("time").min().alias("start_time"), pl.col("time").max().alias("end_time")
    )
    return _wide(each, [*_KEYS], mean=False)


def _of_machines(samples: pl.DataFrame) -> pl.DataFrame:
    """Return one row per machine and sample; GPUs busy are a mean over the machine's GPUs."""
    gaps = samples["time"].unique().sort().diff().drop_nulls()
    step = float(gaps.median() or 0.0)  # type: ignore[arg-type]
    each = samples.with_columns(start_time=pl.col("time"), end_time=pl.col("time") + step)
    keys = ["node_id", "start_time"]
    busy = _wide(each.filter(pl.col("column") == "gpu_milli"), keys, mean=True)
    rest = _wide(each.filter(pl.col("column") != "gpu_milli"), keys, mean=False)
    frames = [f for f in (busy, rest) if f.height]
    wide = frames[0] if len(frames) == 1 else busy.join(rest, on=[*keys, "end_time"], how="full", coalesce=True)
    if "gpu_milli" in wide.columns:
        wide = wide.with_columns((pl.col("gpu_milli") / 10).alias("gpu_percent")).drop("gpu_milli")
    return wide.with_columns(pl.lit("node").alias("scope"))


def _wide(each: pl.DataFrame, keys: list[str], *, mean: bool) -> pl.DataFrame:
    """Return one row per key with a column for each metric: its mean or sum over what has the key."""
    made = []
    for name in each["column"].unique(maintain_order=True):
        values = pl.col("value").filter(pl.col("column") == name)
        made.append(pl.when(values.count() > 0).then(values.mean() if mean else values.sum()).alias(name))
    times = [pl.col("end_time").max()] + ([] if "start_time" in keys else [pl.col("start_time").min()])
    return each.group_by(keys, maintain_order=True).agg(*made, *times)


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return usage of instances and machines, and series of other metrics."""
    samples = _Samples()
    for given in inputs:
        _read_file(given.source, samples, quality)
    frame = pl.DataFrame(samples.columns, schema=_SAMPLES)
    known = frame.filter(pl.col("column").is_not_null())
    of_instance = pl.col("job_id").is_not_null() | pl.col("instance_id").is_not_null()
    parts = []
    if (rows := known.filter(of_instance)).height:
        parts.append(_of_instances(rows).with_columns(pl.lit("instance").alias("scope")))
    if (rows := known.filter(~of_instance & pl.col("node_id").is_not_null())).height:
        parts.append(_of_machines(rows))
    tables: dict[str, pl.DataFrame] = {}
    if parts:
        usage = pl.concat(parts, how="diagonal")
        tables["usage"] = usage.with_columns(
            pl.when(pl.col("scope") == "instance").then(pl.lit(DEFAULT_ROLE)).alias("role")
        )
    nobody = known.filter(~of_instance & pl.col("node_id").is_null())
    rest = pl.concat([frame.filter(pl.col("column").is_null()), nobody])
    if rest.height:
        entity = pl.coalesce("job_id", "instance_id", "node_id")
        tables["series"] = rest.select("time", "metric", entity.alias("entity"), "value")
    return Draft(tables, Clock.ABSOLUTE)


def read_alone(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return what `read` does as a trace of its own: a pod's name is the namespace and the pod."""
    draft = read(inputs, quality)
    tables = {}
    for name, made in draft.tables.items():
        assert isinstance(made, pl.DataFrame)
        tables[name] = made.drop(NAMESPACE, strict=False)
    return Draft(tables, draft.clock, draft.zone)


READER = READERS.add(
    Reader("prometheus", "Prometheus range queries (DCGM and others), as usage", (), read_alone, recognise)
)
