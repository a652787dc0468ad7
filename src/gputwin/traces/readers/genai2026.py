"""Alibaba GenTD26: a Stable Diffusion service seen from its requests, its queue and its containers.

Published with Lin et al., "Understanding Diffusion Model Serving in Production", SoCC'25. Most files hold the samples
of one metric under the same header, so the file's name says which. Use of a container goes to `usage`, other samples
to `series`, requests to `requests`.

Both clocks are moved by an undisclosed offset, each by its own. Even the time of day of `gmt_create` is not true: the
publisher has released the same requests 77 days and 17 hours apart, and in this release nobody asks for images around
noon. So no zone is applied, and each clock starts at zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from gputwin.core.errors import InputError
from gputwin.traces.longform import with_time
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.schema import Status
from gputwin.traces.sources import Source
from gputwin.traces.tabular import CsvKind, read_csv
from gputwin.traces.walltime import to_unix_seconds

_EMPTY = ("NULL", "None")
_BYTES_PER_MIB = 1 << 20

SAMPLES = CsvKind(
    "samples",
    {"timestamp_anon": pl.Float64, "value": pl.Float64, "container_ip": pl.String, "request_type": pl.String},
    optional=frozenset({"request_type"}),
    nulls=_EMPTY,
)
_SHARED_REQUEST_COLUMNS = {
    "predict_type": pl.String,
    "exec_time_seconds": pl.Float64,
    "prompt_length": pl.Float64,
    "num_images_per_prompt": pl.Float64,
    "num_inference_steps": pl.Float64,
    "checkpoint_model_version_id": pl.String,
}
_WITHOUT_PLACE = frozenset({"negative_prompt_length", "style_type"})
TIMED_REQUESTS = CsvKind(
    "lora_request_trace",
    {
        **_SHARED_REQUEST_COLUMNS,
        "gmt_create": pl.String,
        "predict_status": pl.String,
        "groupId": pl.String,
        "num_lora": pl.Float64,
    },
    # An earlier release spells out exec_time_seconds in these two.
    ignored=_WITHOUT_PLACE | {"gmt_modified", "exec_time"},
    nulls=_EMPTY,
)
TIMELESS_REQUESTS = CsvKind(
    "data_trace_processed",
    {**_SHARED_REQUEST_COLUMNS, "lora_args": pl.String},
    ignored=_WITHOUT_PLACE,
    nulls=_EMPTY,
)

SERIES = {
    "qps": "qps",
    "queue_size": "queue_length",
    "queue_rt": "queue_wait_ms",
    "pipeline_update_latency": "pipeline_load_ms",
    "basemodel_update_latency": "base_model_load_ms",
    "base_model_update_latency": "base_model_load_ms",
    "lora_update_latency": "lora_load_ms",
    "controlnet_latency": "controlnet_load_ms",
    "model_predict": "model_predict_ms",
    "pipeline_inference": "pipeline_inference_ms",
}
"""Start of a file's name -> metric."""
USAGE = {
    "pod_gpu_duty_cycle": ("gpu_milli", 10.0),
    "pod_gpu_memory_used_bytes": ("gpu_memory_mib", 1 / _BYTES_PER_MIB),
    "pod_memory_util": ("memory_percent", 100.0),
}
"""Start of a file's name -> usage column, and what to multiply by (% of one GPU, bytes, fraction)."""
_STATUS = {
    "SUCCEED": Status.COMPLETED,
    "FAILED": Status.FAILED,
    "PROCESSING": Status.RUNNING,
    "PENDING": Status.WAITING,
}


def recognise(source: Source) -> str | None:
    """Return which metric a file of samples holds, by its name."""
    if SAMPLES.matches(source):
        return next((stem for stem in (*SERIES, *USAGE) if source.name.startswith(stem)), None)
    return None


def _samples(item: Input, quality: QualityLog) -> pl.DataFrame:
    if item.kind == SAMPLES.kind:
        raise InputError(
            "the name does not say which metric these samples are of",
            file=item.source.label,
            remedy=f"name it as the publisher does, starting with one of {', '.join((*SERIES, *USAGE))}",
        )
    frame = read_csv(item.source, SAMPLES, quality).rename({"timestamp_anon": "time"})
    return with_time(frame, item.source.label, quality)


def _series(frame: pl.DataFrame, metric: str) -> pl.DataFrame:
    kind = pl.col("request_type").str.to_lowercase().str.replace(r"\s*requests?$", "").str.replace_all(r"\W+", "_")
    return frame.select(
        "_row",
        "time",
        pl.concat_str(pl.lit(metric), kind, separator="_", ignore_nulls=True).alias("metric"),
        pl.col("container_ip").alias("entity"),
        "value",
    )


def _usage(frame: pl.DataFrame, column: str, factor: float) -> pl.DataFrame:
    return frame.select(
        "_row",
        pl.col("container_ip").alias("instance_id"),
        pl.col("time").alias("start_time"),
        pl.col("time").alias("end_time"),
        (pl.col("value") * factor).alias(column),
    )


def _timed_requests(source: Source, quality: QualityLog) -> pl.DataFrame:
    frame = read_csv(source, TIMED_REQUESTS, quality)
    _report_left_out(source, quality)
    copies = frame.filter(~pl.struct(pl.exclude("_row")).is_first_distinct())
    quality.find("F05", source.label, copies.height, examples=copies)
    frame = to_unix_seconds(frame, "gmt_create", "UTC", source.label, quality)
    state = pl.col("predict_status")
    _report(quality, "F08", source, frame.filter(~state.is_in(list(_STATUS))), "predict_status")
    _report(quality, "Q14", source, frame.filter(state == "PROCESSING"), "time so far is not its duration")
    _report(quality, "Q15", source, frame.filter(state == "PENDING"))
    ended = ~state.is_in(["PROCESSING", "PENDING"]).fill_null(False)
    return frame.select(
        *_request_columns(TIMED_REQUESTS.kind),
        pl.col("gmt_create").alias("submit_time"),
        pl.col("groupId").alias("user"),
        pl.col("num_lora").alias("adapters"),
        state.replace_strict(_STATUS, default=Status.UNKNOWN, return_dtype=pl.String).alias("status"),
        pl.when(ended).then("exec_time_seconds").alias("duration_seconds"),
    )


def _timeless_requests(source: Source, quality: QualityLog) -> pl.DataFrame:
    frame = read_csv(source, TIMELESS_REQUESTS, quality)
    _report_left_out(source, quality)
    return frame.select(
        *_request_columns(TIMELESS_REQUESTS.kind),
        pl.col("exec_time_seconds").alias("duration_seconds"),
        # One {'modelVersionId': …, 'scale': …} per adapter.
        pl.col("lora_args").str.count_matches("{", literal=True).cast(pl.Float64).alias("adapters"),
    )


def _request_columns(name: str) -> tuple[pl.Expr, ...]:
    return (
        pl.col("_row"),
        pl.format(f"{name}:{{}}", "_row").alias("request_id"),
        pl.col("checkpoint_model_version_id").alias("model"),
        pl.col("predict_type").alias("kind"),
        pl.col("prompt_length").alias("input_tokens"),
        pl.col("num_images_per_prompt").alias("images"),
        pl.col("num_inference_steps").alias("inference_steps"),
    )


def _report(quality: QualityLog, rule: str, source: Source, rows: pl.DataFrame, detail: str = "") -> None:
    examples = rows.select(c for c in ("_row", "gmt_create", "predict_status") if c in rows.columns)
    quality.find(rule, source.label, rows.height, detail=detail, examples=examples)


def _report_left_out(source: Source, quality: QualityLog) -> None:
    names = sorted(_WITHOUT_PLACE & set(source.header))
    quality.find("F14", source.label, len(names), detail=", ".join(names))


def _from_zero(frames: Sequence[pl.DataFrame], *columns: str) -> list[pl.DataFrame]:
    """Return the frames with their times counted from the earliest of them all, rounded down to a second."""
    first = [low for f in frames for c in columns if c in f.columns and (low := f[c].min()) is not None]
    origin = math.floor(min(first, default=0.0))  # type: ignore[arg-type]
    return [f.with_columns(pl.col(c) - origin for c in columns if c in f.columns) for f in frames]


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return samples and requests, each on a clock that starts at zero; any of the publisher's files will do."""
    requests: list[pl.DataFrame] = []
    samples: list[pl.DataFrame] = []
    for item in inputs:
        if item.kind == TIMED_REQUESTS.kind:
            requests.append(_timed_requests(item.source, quality))
        elif item.kind == TIMELESS_REQUESTS.kind:
            requests.append(_timeless_requests(item.source, quality))
        elif item.kind in USAGE:
            samples.append(_usage(_samples(item, quality), *USAGE[item.kind]))
        else:
            samples.append(_series(_samples(item, quality), SERIES[item.kind]))
    if samples and any("submit_time" in f.columns for f in requests):
        quality.find("F06", "requests", 2, detail="timestamp_anon of the samples, gmt_create of the requests")
    samples = _from_zero(samples, "time", "start_time", "end_time")
    parts = {
        "usage": [f for f in samples if "instance_id" in f.columns],
        "requests": _from_zero(requests, "submit_time"),
        "series": [f for f in samples if "metric" in f.columns],
    }
    return Draft({t: pl.concat(f, how="diagonal") for t, f in parts.items() if f}, Clock.RELATIVE)


READER = READERS.add(
    Reader(
        "genai2026",
        "Alibaba generative-AI serving (GenTD26), 2026",
        (TIMED_REQUESTS, TIMELESS_REQUESTS, SAMPLES),
        read,
        recognise,
    )
)
