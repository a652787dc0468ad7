"""Numbers as sentences say them."""

from __future__ import annotations

from gputwin.core.errors import shorten
from gputwin.core.units import format_duration

_UNITS = {"ms": "ms", "seconds": "s", "percent": "%", "gib": "GiB", "mib": "MiB", "bytes": "bytes", "per_s": "per s"}
_SPELLED = {"gpu": "GPU", "gpus": "GPUs", "cpu": "CPU", "qps": "QPS", "api": "API", "lora": "LoRA", "cv": "CV"}


def duration(seconds: float | None) -> str:
    """Return a duration as every table shows it: "3 min 08 s", "2 h 17 min", "9 d 4 h"; "–" for none."""
    return format_duration(seconds)


def over_or_none(p95_wait: float | None) -> str:
    """Return how long one in twenty waits, below a tile; at least 95 % do not wait at all where the percentile is zero."""
    no_wait = p95_wait is not None and p95_wait < 1e-3
    return "95 % or more do not wait" if no_wait else f"one in twenty over {duration(p95_wait)}"


def share(value: float | None) -> str:
    """Return a share as a percentage; one that is not nothing and not all is never rounded to it."""
    if value is None:
        return "–"
    if 0 < value < 0.001:
        return "under 0.1 %"
    if 0.999 < value < 1:
        return "over 99.9 %"
    return f"{value * 100:.1f} %"


def unit_words(width: str) -> str:
    """Return a width of time as it stands after "per" or "the busiest": "hour" for "1 h", "30 min" as it is."""
    return {"1 min": "minute", "1 h": "hour", "1 d": "day", "7 d": "week"}.get(width, width)


def times(ratio: float) -> str:
    """Return a ratio as "6.5 times"."""
    return f"{ratio:.1f} times" if ratio < 20 else f"{ratio:,.0f} times"


def amount(size: str, unit: str) -> str:
    """Return a class of sizes as words: "over 8 and up to 16 GPUs" for "≤16", "one GPU" for "1"."""
    if size.startswith("≤"):
        most = int(size[1:].replace(",", ""))
        return f"over {most // 2:,} and up to {most:,} {unit}s"
    if size.startswith(">"):
        return f"over {size[1:]} {unit}s"
    return {"0": f"no {unit}", "<1": f"a share of one {unit}", "1": f"one {unit}"}.get(size, f"{size} {unit}s")


def size_class(group: str) -> str:
    """Return a class of sizes as it stands in a sentence: "over 8 and up to 16" for "≤16"; other groups by their names."""
    if group.startswith("≤"):
        most = int(group[1:].replace(",", ""))
        return f"over {most // 2:,} and up to {most:,}"
    return group if group.isdigit() else label(group)


def metric(name: str) -> str:
    """Return a metric's name as words with its unit: "GPU duty (%)" for gpu_duty_percent."""
    words = name.split("_")
    unit = next((_UNITS[end] for n in (2, 1) if len(words) > n and (end := "_".join(words[-n:])) in _UNITS), "")
    if unit:
        words = words[: -2 if "_".join(words[-2:]) in _UNITS else -1]
    text = " ".join(_SPELLED.get(word, word) for word in words)
    return f"{text} ({unit})" if unit else text


def label(group: str) -> str:
    """Return a group's name as it stands in a sentence."""
    name = shorten(group, 24)
    return name if name.replace(" ", "").isalpha() else f"“{name}”"
