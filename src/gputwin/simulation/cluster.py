"""The cluster a workload runs on: node groups with their resources, as a frozen spec that is saved with each run."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from gputwin.core.errors import InputError, UserError, shorten
from gputwin.traces.dataset import Trace
from gputwin.traces.schema import NODES, conform

# More is a typing mistake, and would only be found out when memory runs out.
MOST_NODES = 1_000_000
_MOST = {"gpus": 10_000, "rdma_percent": 1_000_000}
_MOST_OF_ANYTHING = 10**15


@dataclass(frozen=True)
class NodeGroup:
    """Identical nodes. Amounts are per node; None means the resource is not modelled (never short)."""

    name: str
    count: int
    gpus: int = 0
    gpu_model: str | None = None
    gpu_memory_mib: int | None = None
    cpu_milli: int | None = None
    memory_mib: int | None = None
    disk_mib: int | None = None
    rdma_percent: int | None = None
    rack: str | None = None
    network_domain: str | None = None
    nodes_per_rack: int | None = None
    price_per_hour: float | None = None
    spot: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_NODES:
            raise UserError(f"node group '{self.name}': count must be between 1 and {MOST_NODES:,}, not {self.count}")
        for field in (
            "gpus",
            "gpu_memory_mib",
            "cpu_milli",
            "memory_mib",
            "disk_mib",
            "rdma_percent",
            "price_per_hour",
        ):
            value = getattr(self, field)
            if value is not None and not 0 <= value <= _MOST.get(field, _MOST_OF_ANYTHING):
                most = _MOST.get(field, _MOST_OF_ANYTHING)
                raise UserError(f"node group '{self.name}': {field} must be between 0 and {most:,}, not {value}")
        if self.nodes_per_rack is not None and self.nodes_per_rack < 1:
            raise UserError(f"node group '{self.name}': nodes_per_rack must be at least 1")


@dataclass(frozen=True)
class Cluster:
    """A named list of node groups. Node ids are the group's name and a number, unless `node_ids` gives them."""

    name: str
    groups: tuple[NodeGroup, ...]
    node_ids: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.groups:
            raise UserError(f"cluster '{self.name}' has no node groups")
        names = [g.name for g in self.groups]
        if self.node_count > MOST_NODES:
            raise UserError(f"cluster '{self.name}' must have at most {MOST_NODES:,} nodes, not {self.node_count:,}")
        if len(set(names)) != len(names):
            raise UserError(f"cluster '{self.name}': node group names must differ")
        if self.node_ids is not None and len(self.node_ids) != self.node_count:
            raise UserError(f"cluster '{self.name}': {len(self.node_ids)} node ids for {self.node_count} nodes")

    @property
    def node_count(self) -> int:
        """Return the number of nodes."""
        return sum(g.count for g in self.groups)

    @property
    def gpu_count(self) -> int:
        """Return the number of GPUs."""
        return sum(g.count * g.gpus for g in self.groups)

    def gpus_by_model(self) -> dict[str, int]:
        """Return the number of GPUs of each model, largest first."""
        total: dict[str, int] = {}
        for group in self.groups:
            if group.gpus:
                model = group.gpu_model or "unknown"
                total[model] = total.get(model, 0) + group.count * group.gpus
        return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))

    def nodes(self) -> pl.DataFrame:
        """Return one row per node in the canonical node table's columns."""
        rows: list[dict[str, Any]] = []
        for group in self.groups:
            for i in range(group.count):
                rack = group.rack
                if rack is None and group.nodes_per_rack is not None:
                    rack = f"{group.name}-rack-{i // group.nodes_per_rack}"
                rows.append(
                    {
                        "node_id": f"{group.name}-{i}",
                        "gpu_model": group.gpu_model,
                        "gpu_count": group.gpus,
                        "gpu_memory_mib": group.gpu_memory_mib,
                        "cpu_milli": group.cpu_milli,
                        "memory_mib": group.memory_mib,
                        "disk_mib": group.disk_mib,
                        "rdma_percent": group.rdma_percent,
                        "rack": rack,
                        "network_domain": group.network_domain,
                        "is_spot": group.spot,
                    }
                )
        schema = {c.name: c.dtype for c in NODES.columns if c.name in rows[0]}
        frame = conform(NODES, pl.DataFrame(rows, schema=schema).lazy()).collect()
        if self.node_ids is not None:
            frame = frame.with_columns(pl.Series("node_id", self.node_ids))
        return frame

    def to_json(self) -> dict[str, Any]:
        """Return the spec as plain data."""
        return asdict(self)

    @classmethod
    def from_nodes(cls, name: str, nodes: pl.DataFrame) -> Cluster:
        """Return the cluster of a canonical node table, node order and ids kept."""
        if nodes.is_empty():
            raise UserError(f"'{name}' has no node table; give the cluster with --cluster")
        fields = [
            "gpu_model",
            "gpu_count",
            "gpu_memory_mib",
            "cpu_milli",
            "memory_mib",
            "disk_mib",
            "rdma_percent",
            "rack",
            "network_domain",
            "is_spot",
        ]
        runs = (
            nodes.with_columns(pl.struct(fields).rle_id().alias("_run"))
            .group_by("_run", maintain_order=True)
            .agg(pl.len().alias("count"), *(pl.col(f).first() for f in fields))
        )
        groups = tuple(
            NodeGroup(
                name=f"group-{row['_run']}",
                count=row["count"],
                gpus=row["gpu_count"],
                gpu_model=row["gpu_model"],
                gpu_memory_mib=row["gpu_memory_mib"],
                cpu_milli=row["cpu_milli"],
                memory_mib=row["memory_mib"],
                disk_mib=row["disk_mib"],
                rdma_percent=row["rdma_percent"],
                rack=row["rack"],
                network_domain=row["network_domain"],
                spot=row["is_spot"],
            )
            for row in runs.to_dicts()
        )
        return cls(name, groups, tuple(nodes["node_id"].to_list()))


_HOMOGENEOUS = re.compile(r"homogeneous:(\d{1,7})x(\d{1,3})")


def open_cluster(name: str) -> Cluster:
    """Return the cluster called `name`: built-in, `homogeneous:NODESxGPUS`, a YAML spec, or raw or canonical nodes."""
    from gputwin.simulation.built_in_clusters import BUILT_IN

    if name in BUILT_IN:
        return BUILT_IN[name]()
    if match := _HOMOGENEOUS.fullmatch(name):
        return Cluster(name, (NodeGroup("node", int(match[1]), int(match[2])),))
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return _from_yaml(path)
    if not path.exists():
        known = ", ".join([*BUILT_IN, "homogeneous:NODESxGPUS"])
        raise UserError(f"no cluster '{name}'; give a YAML spec, a node file, or one of {known}")
    from gputwin.traces.locate import open_trace

    return Cluster.from_nodes(path.name or path.resolve().name, open_trace(name).nodes)


def cluster_for(trace: Trace, name: str | None) -> Cluster:
    """Return the cluster called `name`, or the trace's own nodes where none is named."""
    if name is not None:
        return open_cluster(name)
    if trace.nodes.is_empty():
        which = shorten(trace.meta.title or trace.meta.source)
        raise UserError(f"the trace '{which}' does not say which nodes there are; give the cluster with --cluster")
    return Cluster.from_nodes(trace.meta.source, trace.nodes)


def _from_yaml(path: Path) -> Cluster:
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path, remedy="check the path") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not YAML ({str(error).splitlines()[0]})", file=path, remedy="see docs/clusters.md") from None
    return cluster_of(data, path)


def cluster_of(data: object, path: Path | None = None) -> Cluster:
    """Return the cluster that plain data describes; `path` is the file it came from."""
    from pydantic import TypeAdapter, ValidationError

    if isinstance(data, dict):
        data.setdefault("name", "given" if path is None else path.stem)
        groups = data.get("groups")
        if isinstance(groups, list):
            for i, group in enumerate(groups):
                if isinstance(group, dict):
                    group.setdefault("name", f"group-{i}")
    try:
        adapter = TypeAdapter(Cluster)
        _reject_unknown(data, path)
        return adapter.validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            first["msg"],
            file=path,
            field=".".join(str(p) for p in first["loc"]),
            remedy="see docs/clusters.md",
        ) from None
    except InputError:
        raise
    except UserError as error:
        raise InputError(str(error), file=path, remedy="see docs/clusters.md") from None


def _reject_unknown(data: object, path: Path | None) -> None:
    """Raise on fields that no spec has: a misspelt one would otherwise be silently the default."""
    known = {"name", "groups", "node_ids"}
    group_fields = set(NodeGroup.__dataclass_fields__)
    if not isinstance(data, dict):
        raise InputError("not a cluster spec", file=path, remedy="it needs 'groups'; see docs/clusters.md")
    for key in data:
        if key not in known:
            raise InputError("unknown field", file=path, field=str(key), remedy=f"known: {', '.join(sorted(known))}")
    groups = data.get("groups")
    for i, group in enumerate(groups if isinstance(groups, list) else ()):
        for key in group if isinstance(group, dict) else ():
            if key not in group_fields:
                raise InputError(
                    "unknown field",
                    file=path,
                    field=f"groups.{i}.{key}",
                    remedy=f"known: {', '.join(sorted(group_fields))}",
                )
