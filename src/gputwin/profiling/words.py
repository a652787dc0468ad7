"""Features in people's words, for what sets classes apart, and for figures."""

from __future__ import annotations

_PLAIN = {
    "log_instances": "instances",
    "log_cpu_milli": "CPU asked for",
    "log_memory_mib": "memory asked for",
    "log_gpu_milli": "GPUs asked for",
    "log_gpu_memory_mib": "GPU memory asked for",
    "log_disk_mib": "disk asked for",
    "log_rdma_percent": "RDMA asked for",
    "log_max_per_node": "limit per node",
    "log_requested_seconds": "time asked for",
    "log_used_cpu_milli": "CPU use",
    "log_used_memory_mib": "memory use",
    "log_used_memory_max_mib": "peak memory use",
    "log_used_gpu_milli": "GPU use",
    "log_used_gpu_memory_mib": "GPU memory use",
    "log_used_gpu_memory_max_mib": "peak GPU memory use",
    "log_used_network_receive_bytes": "network input",
    "log_used_network_send_bytes": "network output",
    "arrival_day": "day of arrival",
    "arrival_hour": "hour of arrival",
    "arrival_weekday": "weekday of arrival",
}
_ALIKE = {
    "repeat": "its repetitions",
    "signature": "same user and request",
    "shape": "same request",
    "line": "same user and kind of job",
    "user": "same user",
    "tenant": "same tenant",
    "workload": "same workload",
    "role": "same role",
    "qos": "same class of service",
}
_OF_ALIKE = {
    "mean": "duration of {}",
    "jobs": "number of jobs, {}",
    "last": "last duration, {}",
    "last3": "last three durations, {}",
}


def in_words(feature: str) -> str:
    """Return a feature as people say it; what has no words yet keeps its name without underscores."""
    if feature in _PLAIN or feature in _ALIKE:
        return _PLAIN.get(feature) or _ALIKE[feature]
    key, _, what = feature.rpartition("_")
    if key in _ALIKE and what in _OF_ALIKE:
        return _OF_ALIKE[what].format(_ALIKE[key])
    return feature.removeprefix("log_").replace("_", " ")
