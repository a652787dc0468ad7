"""A folder in which the examples of `--help` run: every file they name is there, cut down so that each takes a moment."""

from __future__ import annotations

import gzip
import json
import re
import runpy
import shutil
import tarfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import polars as pl

from gputwin.cli.main import main
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.studies.store import RunStore
from gputwin.traces.dataset import Trace
from gputwin.traces.locate import open_trace
from tests.conftest import REPOSITORY
from tests.traces.samples import kubernetes, prometheus, slurm

JOBS = "40"
ROWS = {
    "disaggregated_DLRM_trace.csv": 800,
    "thetagpu_jobs.csv": 300,
    "pai_joined_1000_sample.csv": 400,
    "AzureLLMInferenceTrace_conv.csv": 500,
    "language_m-large_client_rates.csv": 3000,
    "philly_jobs_by_vc.csv": 200,
    "openb_pod_list_default.csv": 300,
    "openb_pod_list_gpushare40.csv": 300,
    "openb_node_list_gpu_node.csv": 40,
    "qps.csv": 2000,
    "hourly_concurrency.csv": 400,
}
"""Publishers' files and how many of their rows are taken."""
QUEUES = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: %s}
spec:
  cohort: all
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 12}]}]
"""
TEXTS = {
    "cluster.yaml": "groups: [{name: a, count: 6, gpus: 8}]\n",
    "nodes.yaml": (
        "groups:\n"
        "- {name: HN, count: 300, gpus: 8, cpu_milli: 128000, memory_mib: 1048576, disk_mib: 4194304, rdma_percent: 200,"
        " price_per_hour: 20, nodes_per_rack: 50}\n"
        "- {name: CN, count: 300, cpu_milli: 192000, memory_mib: 1048576, disk_mib: 2097152, rdma_percent: 100,"
        " price_per_hour: 5, nodes_per_rack: 50}\n"
    ),
    "slurm.conf": "PriorityType=priority/multifactor\nPriorityWeightAge=1000\nPriorityWeightFairshare=5000\n",
    "queues.yaml": "---\n".join(QUEUES % team for team in ("llm", "vision", "speech", "students")),
    "day.yaml": "- {7g.40gb: 6, 1g.5gb: 10}\n- {1g.5gb: 60}\n",
    "parted.yaml": (
        "version: v1\nmig-configs:\n  all-balanced:\n  - devices: all\n    mig-enabled: true\n"
        "    mig-devices: {1g.10gb: 2, 2g.20gb: 1, 3g.40gb: 1}\n"
    ),
    "study.yaml": (
        f"trace: synthetic:pai2020?jobs={JOBS}\ncluster: homogeneous:8x8\nwindows: 3\nheld_out: 2\n"
        "present: {order: fifo, backfill: greedy}\nconfigurations: {order: [fifo, sjf]}\nobjectives: {mean_wait: 1}\n"
    ),
    "schedulers.yaml": (
        f"trace: synthetic:pai2020?jobs={JOBS}\ncluster: homogeneous:8x8\ngrid: {{order: [fifo, sjf]}}\nseeds: 2\n"
    ),
}


def prepare(folder: Path, data: Path, reference: Path) -> None:
    """Fill the current folder, which is `folder`, with what the examples name."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, rows in ROWS.items():
        _take(data, name, rows, folder / name)
    for name in ("AzureLLMInferenceTrace_conv.csv", "language_m-large_client_rates.csv", "thetagpu_jobs.csv"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    shutil.copy(folder / "philly_jobs_by_vc.csv", folder / "philly.csv")
    shutil.copy(next(data.rglob("simulation_throughputs.json.gz")), folder)
    for name, marker in (("pollux_profiles", "bert_placements.csv.gz"), ("pollux", "average_completion_seconds.csv")):
        top = data if name == "pollux_profiles" else reference
        shutil.copytree(next(top.rglob(marker)).parent, folder / name)
    for name, marker in (("tiresias", "60_job.csv"), ("gavel", "jct_by_policy_and_rate.csv")):
        shutil.copytree(next(reference.rglob(marker)).parent, folder / name)
    _logs(folder)
    _traces(folder)


def _take(data: Path, name: str, rows: int, to: Path) -> None:
    found = next(data.rglob(f"{name}*"))
    raw = gzip.decompress(found.read_bytes()) if found.suffix == ".gz" else found.read_bytes()
    head, *lines = raw.splitlines(keepends=True)
    # From all of it: a publisher's first rows can be those whose times are not known.
    to.write_bytes(b"".join([head, *lines[:: max(len(lines) // rows, 1)]]))


def _logs(folder: Path) -> None:
    """Write logs as a user has them: of four teams, of Slurm, of Kubernetes with what Prometheus saw."""
    runpy.run_path(str(REPOSITORY / "examples" / "make_log.py"))["main"](folder / "log.csv")
    log = pl.read_csv(folder / "log.csv", try_parse_dates=True).head(90)
    log.write_csv(folder / "log.csv")
    log.write_parquet(folder / "jobs.parquet")
    took = (pl.col("finished_at") - pl.col("started_at")).dt.total_seconds()
    log.select(pl.col("job_id").alias("id"), "submitted_at", took.alias("took"), "gpus").write_csv(folder / "jobs.csv")
    log.write_csv(folder / "next-month.csv")
    slurm.write(folder)[0].rename(folder / "sacct-now.txt")
    ended = [line for line in slurm.LINES if not re.search("Unknown|CANCELLED", line)]
    (folder / "sacct.txt").write_text("\n".join((slurm.HEADER, *ended)) + "\n")
    cluster, nodes = kubernetes.write(folder)
    items = [item for file in (cluster, nodes) for item in json.loads(file.read_text())["items"]]
    (folder / "pods.json").write_text(json.dumps(kubernetes.as_list(*items)))
    seen = {"exported_pod": "bert-worker-0", "exported_namespace": "default", "gpu": "0", "Hostname": "gpu-0"}
    for name, metric in (("gpu_util", "DCGM_FI_DEV_GPU_UTIL"), ("gpu_memory", "DCGM_FI_DEV_FB_USED")):
        samples = prometheus.matrix(({"__name__": metric, **seen}, [[1706702460, "50"], [1706702520, "70"]]))
        (folder / f"{name}.json").write_text(samples)
    own = (REPOSITORY / "examples" / "coldest.py").read_text().replace('"coldest"', '"mine"')
    (folder / "my_policy.py").write_text(own)


def _traces(folder: Path) -> None:
    """Make the traces and runs that examples go on from."""
    _do("ingest log.csv --guess --yes -o mine")
    _do(f"generate dlrm2025 --jobs {JOBS} -o dlrm")
    _do(f"generate pai2020 --jobs {JOBS} --publisher raw -o pai")
    for file in sorted((folder / "raw").glob("*.csv")):
        with tarfile.open(file.with_suffix(".tar.gz"), "w:gz") as archive:
            archive.add(file, file.name)
    _do("ingest thetagpu_jobs.csv -o theta")
    _do("slice mine --first 50% -o march")
    _do("slice mine --last 50% -o april")
    _do("profile mine --model group-median --no-value -o profile")
    _do("ingest pai_joined_1000_sample.csv -o new-jobs")
    shutil.copytree(folder / "profile", folder / "pai-profile")
    for name, log in (("servegen", "language_m-large_client_rates"), ("genai", "qps"), ("spot", "hourly_concurrency")):
        _do(f"ingest {log}.csv -o {name}")
    for run, order in (("fifo", "fifo"), ("sjf", "sjf"), ("easy", "fifo --backfill easy")):
        _do(f"simulate pai --cluster homogeneous:8x8 --order {order} -o {run}")
    _do("study schedulers.yaml -o runs")
    nodes = Cluster("mixed", (NodeGroup("v", 4, 8, gpu_model="V100"), NodeGroup("t", 4, 8, gpu_model="T4"))).nodes()
    logged = open_trace(["mine"])
    Trace.from_frames({"tasks": logged.tasks, "nodes": nodes}, logged.meta).save(folder / "trace")


def _do(line: str) -> None:
    with redirect_stdout(StringIO()):
        assert main([*line.split(), "--quiet"]) == 0, line


def adapted(words: list[str], folder: Path) -> list[str]:
    """Return an example's words as they run here: with fewer jobs, names of files and ids that are there."""
    few = [re.sub(r"jobs=\d+", f"jobs={JOBS}", word) for word in words]
    few = [JOBS if before == "--jobs" else word for before, word in zip(["", *few], few, strict=False)]
    spread = [found for word in few for found in (_files(word, folder) if "*" in word else [word])]
    named = {"4b3f04b66a525d2df903eb16": "longest", **_run_ids(folder)}
    return [named.get(word, word) for word in spread]


def _files(pattern: str, folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.glob(pattern))


def _run_ids(folder: Path) -> dict[str, str]:
    first, second, *_ = (run.key[:8] for run in RunStore(folder / "runs", create=False).list())
    return {"3f2a91c0": first, "b07d55e1": second}
