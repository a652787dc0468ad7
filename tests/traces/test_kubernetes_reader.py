"""Kubernetes dumps: requests, gangs, lives and nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gputwin.core.errors import InputError
from gputwin.traces.dataset import Trace
from gputwin.traces.ingest import Options, ingest
from tests.traces.mutation import mutated
from tests.traces.samples import kubernetes
from tests.traces.samples.kubernetes import as_list, node, pod

GPU_LABELS = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"}


def dump_of(folder: Path, document: object, *, lenient: bool = False) -> Trace:
    path = folder / "dump.json"
    path.write_text(json.dumps(document))
    return ingest([path], options=Options(lenient=lenient))


def only_task(folder: Path, one: dict[str, Any]) -> dict[str, Any]:
    return dump_of(folder, as_list(one)).tasks.row(0, named=True)


def rules(trace: Trace) -> dict[str, int]:
    return {f.rule: f.count for f in trace.meta.findings}


def with_containers(name: str, containers: list[Any], inits: tuple[Any, ...] = (), **spec: Any) -> dict[str, Any]:
    one = pod(name)
    one["spec"] |= {"containers": containers, "initContainers": list(inits), **spec}
    return one


def container(limits: dict[str, str] | None = None, /, restart: str | None = None, **requests: str) -> dict[str, Any]:
    resources = {"requests": requests, **({"limits": limits} if limits else {})}
    return {"name": "c", "resources": resources, **({"restartPolicy": restart} if restart else {})}


def test_containers_add_up_and_init_containers_do_not(tmp_path):
    task = only_task(
        tmp_path,
        with_containers(
            "a",
            [container(cpu="1", memory="1Gi"), container(cpu="500m", memory="1Gi")],
            (container(cpu="4"), container(cpu="2", memory="5Gi")),
            overhead={"cpu": "250m", "memory": "128Mi"},
        ),
    )
    assert (task["cpu_milli"], task["memory_mib"]) == (4250, 5 * 1024 + 128)


def test_a_sidecar_runs_beside_what_comes_after_it(tmp_path):
    """KEP-753: init containers that restart always count with the containers and with later init containers."""
    inits = (container(cpu="3"), container(cpu="1", restart="Always"), container(cpu="2500m"))
    assert only_task(tmp_path, with_containers("a", [container(cpu="2")], inits))["cpu_milli"] == 3500
    assert only_task(tmp_path, with_containers("b", [container(cpu="3")], inits))["cpu_milli"] == 4000


def test_a_limit_alone_is_a_request_too(tmp_path):
    task = only_task(tmp_path, with_containers("a", [container({"nvidia.com/gpu": "2", "memory": "2Gi"}, cpu="1")]))
    assert (task["gpu_count"], task["gpu_milli"], task["gpu_limit_milli"]) == (2, 1000, 2000)
    assert (task["memory_mib"], task["memory_limit_mib"], task["cpu_limit_milli"]) == (2048, 2048, None)


def test_a_pod_is_limited_only_where_every_container_is(tmp_path):
    both = [container({"cpu": "2", "memory": "1Gi"}, cpu="1"), container({"cpu": "1"}, cpu="1")]
    task = only_task(tmp_path, with_containers("a", both))
    assert (task["cpu_limit_milli"], task["memory_limit_mib"]) == (3000, None)


@pytest.mark.parametrize(
    ("resource", "count", "expected"),
    [
        ("nvidia.com/gpu", "4", (4, 1000, None)),
        ("amd.com/gpu", "1", (1, 1000, None)),
        ("nvidia.com/mig-1g.5gb", "2", (2, 143, 5120)),
        ("nvidia.com/mig-3g.40gb", "1", (1, 429, 40_960)),
        ("nvidia.com/mig-2g.12gb", "1", (1, 500, 12_288)),
    ],
)
def test_kinds_of_gpus(tmp_path, resource, count, expected):
    task = only_task(tmp_path, pod("a", requests={"cpu": "1", resource: count}))
    assert (task["gpu_count"], task["gpu_milli"], task["gpu_memory_mib"]) == expected


def test_other_resources_are_reported(tmp_path):
    trace = dump_of(tmp_path, as_list(*(pod(n, requests={"cpu": "1", "rdma/hca": "1"}) for n in "abc")))
    assert [(f.count, f.detail) for f in trace.meta.findings if f.rule == "F21"] == [(3, "rdma/hca")]


def test_selector_and_affinity_leave_the_models_both_allow(tmp_path):
    def term(*models: str) -> dict[str, Any]:
        return {"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "In", "values": list(models)}]}

    one = pod("a")
    required = {"nodeSelectorTerms": [term("H100", "A100"), term("V100")]}
    one["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert only_task(tmp_path, one)["gpu_models_allowed"] == "A100|H100|V100"
    one["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": "A100-SHARED", "disk": "ssd"}
    assert only_task(tmp_path, one)["gpu_models_allowed"] == "A100"
    del one["spec"]["nodeSelector"]
    required["nodeSelectorTerms"].append({"matchExpressions": [{"key": "zone", "operator": "Exists"}]})
    assert only_task(tmp_path, one)["gpu_models_allowed"] is None


def test_a_pod_lives_from_its_binding_to_its_last_container(tmp_path):
    one = pod("a", "Failed", finished="2024-01-31T12:10:05.5+00:00")
    one["status"]["containerStatuses"][0]["restartCount"] = 2
    one["spec"]["priority"] = 2_000_001_000
    task = only_task(tmp_path, one)
    assert (task["submit_time"], task["start_time"], task["end_time"]) == (0, 5, 605.5)
    assert (task["status"], task["attempts"], task["priority"], task["tenant"]) == (
        "failed",
        3,
        2_000_001_000,
        "vision",
    )


def test_a_pod_that_is_placed_but_not_up_holds_its_resources(tmp_path):
    task = only_task(tmp_path, pod("a", "Pending"))
    assert (task["status"], task["is_running"], task["start_time"]) == ("waiting", True, 5)


def workers(*created: str, sizes: tuple[str, ...] = ("1", "1"), kind: str = "PyTorchJob") -> list[dict[str, Any]]:
    return [
        pod(f"w-{i}", requests={"cpu": size}, owner=(kind, "job"), created=time, mpi_job_role="worker")
        for i, (time, size) in enumerate(zip(created, sizes, strict=True))
    ]


def test_alike_pods_of_a_job_are_a_gang(tmp_path):
    trace = dump_of(tmp_path, as_list(*workers("2024-01-31T11:00:00Z", "2024-01-31T11:00:30Z")))
    task = trace.tasks.row(0, named=True)
    assert (task["job_id"], task["role"], task["instances"]) == ("vision/pytorchjob/job", "worker", 2)
    assert trace.instances["instance_id"].to_list() == ["w-0", "w-1"]


@pytest.mark.parametrize(
    "pods",
    [
        workers("2024-01-31T11:00:00Z", "2024-01-31T11:00:00Z", sizes=("1", "2")),
        workers("2024-01-31T11:00:00Z", "2024-01-31T11:30:00Z"),
    ],
)
def test_pods_that_differ_or_come_later_are_tasks_of_their_own(tmp_path, pods):
    tasks = dump_of(tmp_path, as_list(*pods)).tasks
    assert tasks["job_id"].to_list() == ["vision/pytorchjob/job"] * 2
    assert tasks["role"].to_list() == ["worker/w-0", "worker/w-1"]


def test_replicas_of_a_service_are_no_gang(tmp_path):
    pods = workers("2024-01-31T11:00:00Z", "2024-01-31T11:00:00Z", kind="ReplicaSet")
    tasks = dump_of(tmp_path, as_list(*pods)).tasks
    assert tasks["job_id"].to_list() == ["vision/w-0", "vision/w-1"]
    assert tasks["application"].to_list() == ["job", "job"]


def test_a_gang_starts_with_its_last_pod(tmp_path):
    pods = workers("2024-01-31T11:00:00Z", "2024-01-31T11:00:00Z")
    pods[1]["status"]["conditions"][0]["lastTransitionTime"] = "2024-01-31T13:00:00Z"
    assert dump_of(tmp_path, as_list(*pods)).tasks["start_time"].item() == 7200
    del pods[1]["status"]["conditions"]
    pods[1]["status"]["phase"] = "Pending"
    task = dump_of(tmp_path, as_list(*pods)).tasks.row(0, named=True)
    assert (task["start_time"], task["status"], task["is_running"]) == (None, "waiting", False)


def test_a_node_counts_with_what_is_allocatable(tmp_path):
    labels = GPU_LABELS | {
        "topology.kubernetes.io/zone": "z1",
        "topology.kubernetes.io/rack": "r7",
        "eks.amazonaws.com/capacityType": "SPOT",
    }
    row = dump_of(tmp_path, as_list(node("n", 8, **labels))).nodes.row(0, named=True)
    assert (row["gpu_count"], row["gpu_model"], row["gpu_memory_mib"]) == (8, "NVIDIA-A100-SXM4-80GB", 81_920)
    assert (row["cpu_milli"], row["memory_mib"], row["disk_mib"]) == (95_500, 1056 * 1024, 900 * 1024)
    assert (row["rack"], row["network_domain"], row["is_spot"]) == ("r7", "z1", True)


def test_a_cordoned_node_is_kept_and_reported(tmp_path):
    closed = node("n", 8)
    closed["spec"]["unschedulable"] = True
    trace = dump_of(tmp_path, as_list(closed, node("m", 0)))
    assert trace.nodes.height == 2
    assert rules(trace) == {"F23": 1}


def test_gpus_shared_in_time_count_once_and_pods_get_a_part(tmp_path):
    labels = GPU_LABELS | {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "2"}
    document = as_list(node("gpu-0", 8, **labels), pod("a", requests={"nvidia.com/gpu": "1"}))
    trace = dump_of(tmp_path, document)
    assert trace.nodes["gpu_count"].item() == 2
    assert trace.tasks.select("gpu_count", "gpu_milli").row(0) == (1, 250)


def test_one_object_and_typed_lists_are_read_as_well(tmp_path):
    assert dump_of(tmp_path, pod("a")).tasks.height == 1
    bare = {key: value for key, value in pod("a").items() if key not in ("kind", "apiVersion")}
    assert dump_of(tmp_path, {"kind": "PodList", "apiVersion": "v1", "items": [bare]}).tasks.height == 1


def test_other_kinds_and_copies_are_dropped_and_counted(tmp_path):
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    trace = dump_of(tmp_path, as_list(pod("a"), pod("a"), service))
    assert (trace.tasks.height, trace.meta.rows_read, trace.meta.rows_dropped) == (1, 3, 2)
    assert rules(trace) | {"F22": 1, "Q02": 1} == rules(trace)


def test_a_pod_made_again_under_its_name_is_another_task(tmp_path):
    again = pod("a")
    again["metadata"]["uid"] = "other"
    assert dump_of(tmp_path, as_list(pod("a"), again)).tasks["job_id"].to_list() == ["vision/a", "vision/a@other"]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("metadata",), [], r"items\[0\].metadata'.*expected an object, found a list"),
        (("metadata", "name"), None, r"items\[0\].metadata.name'.*is missing"),
        (("metadata", "creationTimestamp"), "noon", r"creationTimestamp'.*'noon' is not a time"),
        (("spec", "containers"), {}, r"spec.containers'.*expected a list, found an object"),
        (("spec", "containers", 0, "resources", "requests", "cpu"), "two", r"requests.cpu'.*not a Kubernetes quantity"),
        (("spec", "priority"), "high", r"spec.priority'.*expected a number, found text"),
        (("status", "conditions", 0), "x", r"status.conditions\[0\]'.*expected an object, found text"),
    ],
)
def test_a_wrong_type_is_one_error_that_names_item_and_field(tmp_path, path, value, message):
    one = pod("a")
    parent: Any = one
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    with pytest.raises(InputError, match=message):
        dump_of(tmp_path, as_list(one))


def test_lenient_makes_a_bad_quantity_unknown(tmp_path):
    trace = dump_of(tmp_path, as_list(pod("a", requests={"cpu": "two", "memory": "1Gi"})), lenient=True)
    assert trace.tasks.select("cpu_milli", "memory_mib").row(0) == (None, 1024)
    assert rules(trace)["F03"] > 0


def test_text_that_is_no_json_is_one_error(tmp_path):
    path = tmp_path / "dump.json"
    path.write_text('{"apiVersion": "v1", "kind": "List", "items": [')
    with pytest.raises(InputError, match="cut short"):
        ingest([path])
    path.write_text('{"apiVersion": "v1", "items": ' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(InputError, match="nested too deeply"):
        ingest([path])
    path.write_text('{"apiVersion": "v1", "kind": "List", "items": []}')
    with pytest.raises(InputError, match="no pods and no nodes"):
        ingest([path])


def test_pods_fit_the_nodes_of_the_dump(tmp_path):
    trace = ingest(kubernetes.write(tmp_path))
    assert not {"Q22", "Q23", "Q30"} & set(rules(trace))
    assert set(trace.instances["node_id"].drop_nulls()) <= set(trace.nodes["node_id"])
    assert trace.tasks.select(pl.col("instances").sum()).item() == trace.instances.height


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_damage_to_a_dump_is_more_than_an_input_error(tmp_path, data):
    (tmp_path / "raw").mkdir(exist_ok=True)
    cluster, _ = kubernetes.write(tmp_path / "raw")
    document = data.draw(mutated(json.loads(cluster.read_text())))
    cluster.write_text(json.dumps(document))
    try:
        meta = ingest([cluster], options=Options(format="kubernetes", lenient=data.draw(st.booleans()))).meta
    except InputError:
        return
    assert meta.rows_read == meta.rows_kept + meta.rows_dropped
    assert 0 <= meta.rows_dropped <= meta.rows_read
