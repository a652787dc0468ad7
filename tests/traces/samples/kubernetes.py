import json
from pathlib import Path
from typing import Any

ROWS = {"nodes": 2, "tasks": 4, "instances": 5}


def node(name: str, gpus: int, **labels: str) -> dict[str, Any]:
    amounts = {"cpu": "96", "memory": "1056Gi", "ephemeral-storage": "900Gi", "pods": "110"}
    if gpus:
        amounts["nvidia.com/gpu"] = str(gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": {},
        "status": {"capacity": amounts, "allocatable": {**amounts, "cpu": "95500m"}},
    }


def pod(
    name: str,
    phase: str = "Running",
    *,
    requests: dict[str, str] | None = None,
    owner: tuple[str, str] | None = None,
    created: str = "2024-01-31T12:00:00Z",
    scheduled: str | None = "2024-01-31T12:00:05Z",
    finished: str | None = None,
    node_name: str | None = "gpu-0",
    **labels: str,
) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "vision",
        "uid": f"uid-{name}",
        "creationTimestamp": created,
        "labels": {key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()},
    }
    if owner:
        kind, owner_name = owner
        metadata["ownerReferences"] = [
            {"kind": kind, "name": owner_name, "uid": f"uid-{owner_name}", "controller": True}
        ]
    status: dict[str, Any] = {"phase": phase, "qosClass": "Burstable"}
    if scheduled:
        status["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled}]
    if finished:
        terminated = {"exitCode": 0, "finishedAt": finished}
        status["containerStatuses"] = [{"name": "main", "restartCount": 0, "state": {"terminated": terminated}}]
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "resources": {"requests": requests or {"cpu": "500m", "memory": "1Gi"}}}]
    }
    if node_name:
        spec["nodeName"] = node_name
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def as_list(*items: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "items": list(items), "kind": "List", "metadata": {"resourceVersion": ""}}


def write(folder: Path) -> list[Path]:
    worker = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "4"}
    role = {"training.kubeflow.org/replica-type": "worker"}
    gang = [
        pod(f"bert-worker-{i}", requests=worker, owner=("PyTorchJob", "bert"), node_name=f"gpu-{i}") for i in range(2)
    ]
    for member in gang:
        member["metadata"]["labels"] |= role
    cluster = folder / "cluster.json"
    cluster.write_text(
        json.dumps(
            as_list(
                *gang,
                pod("web-6f7d-x1", owner=("ReplicaSet", "web-6f7d"), pod_template_hash="6f7d"),
                pod(
                    "report",
                    "Succeeded",
                    finished="2024-01-31T12:10:05Z",
                    requests={"cpu": "1", "memory": "128974848", "nvidia.com/mig-1g.5gb": "1"},
                ),
                pod("queued", "Pending", scheduled=None, node_name=None, requests={"cpu": "2e0", "memory": "1G"}),
            ),
            indent=4,
        )
    )
    nodes = folder / "nodes.json"
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"}
    nodes.write_text(json.dumps(as_list(node("gpu-0", 8, **labels), node("gpu-1", 8, **labels))))
    return [cluster, nodes]
