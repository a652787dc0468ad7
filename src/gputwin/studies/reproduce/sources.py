"""Where the files of published results are: found by their names below the folders that a user gives."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_DEPTH = 5
"""Folders below a given one that are looked into."""


@dataclass(frozen=True)
class Published:
    """A published result: its name, what it shows, and the files it needs, by the argument that takes them.

    A need is a file's name, also packed (.gz); one that ends in / is the folder that holds that file.
    """

    name: str
    shows: str
    needs: Mapping[str, str]
    remedy: str = ""


RESULTS = (
    Published(
        "fgd2023",
        "six placement policies on the openb cluster (Weng et al., ATC'23)",
        {"nodes": "openb_node_list_gpu_node.csv", "pods": "openb_pod_list_default.csv"},
        "gputwin traces fetch openb2023",
    ),
    Published("pai2020-sjf", "shortest job first with predicted durations (Weng et al., NSDI'22)", {}),
    Published("queueing-models", "closed forms of queueing theory beside simulation", {}),
    Published(
        "dlrm2025-forecast",
        "forecasts of the DLRM 2025 trace's demand",
        {"trace": "disaggregated_DLRM_trace.csv"},
        "gputwin traces fetch dlrm2025",
    ),
    Published(
        "gavel2020",
        "completion times on three GPU models (Narayanan et al., OSDI'20)",
        {"throughputs": "simulation_throughputs.json", "folder": "jct_by_policy_and_rate.csv/"},
        "get the throughputs and the table of the authors' notebooks from their repository",
    ),
    Published(
        "tiresias60",
        "sixty jobs on 4 × 4 GPUs (Gu et al., NSDI'19)",
        {"folder": "60_job.csv/"},
        "get the jobs from the authors' repository",
    ),
    Published(
        "pollux2021",
        "adaptive deep-learning jobs on 16 nodes (Qiao et al., OSDI'21)",
        {"profiles": "bert_placements.csv/", "folder": "average_completion_seconds.csv/"},
        "get the profiles and workloads from the authors' repository",
    ),
    Published(
        "schedulers",
        "schedulers side by side on synthetic PAI 2020 and Philly, and what of the literature holds",
        {"philly": "philly_jobs_by_vc.csv"},
        "gputwin reproduce schedulers without it takes synthetic jobs",
    ),
)


def located(result: Published, folders: Sequence[Path]) -> tuple[dict[str, Path], list[str]]:
    """Return the files of a result by argument, and the names of those that are not there."""
    found: dict[str, Path] = {}
    missing = []
    for argument, need in result.needs.items():
        name, *up = need.split("/")
        path = next((p for folder in folders for p in _files(folder, name)), None)
        if path is None:
            missing.append(name)
            continue
        for _ in up:
            path = path.parent
        found[argument] = path
    return found, missing


def _files(folder: Path, name: str) -> Iterator[Path]:
    """Yield files of that name, packed or not, at most so many folders deep."""
    top = len(folder.parts)
    for at, below, files in os.walk(folder):
        below.sort()
        if len(Path(at).parts) - top >= _DEPTH:
            below.clear()
        for wanted in (name, f"{name}.gz"):
            if wanted in files:
                yield Path(at) / wanted
