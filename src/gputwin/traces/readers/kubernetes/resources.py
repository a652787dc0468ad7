"""What a pod asks for and what a node has, from Kubernetes resource lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from gputwin.core.errors import UserError
from gputwin.core.units import CORE_MILLI, parse_quantity
from gputwin.traces.document import Item
from gputwin.traces.mig import Gpus, MigInstance, gpus_of, mig_instance
from gputwin.traces.quality import QualityLog

Amounts = Mapping[str, Fraction]

WHOLE_GPUS = frozenset(
    {
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "amd.com/gpu",
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
        "habana.ai/gaudi",
    }
)
_MIG = "nvidia.com/mig-"
_PLAIN = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
_MIB = 1 << 20
_LARGEST_AMOUNT = 10**15


def amounts_of(resources: Item, quality: QualityLog) -> dict[str, Fraction]:
    """Return the amounts of a resource list, in cores, bytes or pieces."""
    amounts: dict[str, Fraction] = {}
    for name, value in resources.value.items():
        # Manifests that were converted from YAML may hold bare numbers.
        text = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else resources.text(name)
        try:
            amount = parse_quantity(text or "0")
        except UserError as error:
            if not quality.lenient:
                raise resources.wrong(name, str(error).partition(";")[0]) from None
            quality.find("F03", resources.file, 1, detail=name)
            continue
        if abs(amount) <= _LARGEST_AMOUNT:
            amounts[name] = amount
        else:
            quality.find("F11", resources.file, 1, detail=name)
    return amounts


def pod_requests(spec: Item, quality: QualityLog) -> Amounts:
    """Return what the scheduler sets aside for a pod; a container that states only a limit asks for that."""
    total = _over_containers(spec, lambda item: _limits(item, quality) | _requests(item, quality))
    total |= _requests(spec, quality)
    return _sum([total, amounts_of(spec.child("overhead"), quality)])


def pod_limits(spec: Item, quality: QualityLog) -> Amounts:
    """Return the limits of a pod: of those resources that every container limits."""
    total = _over_containers(spec, lambda item: _limits(item, quality))
    each = [_limits(container, quality) for container in spec.children("containers")]
    total = {name: n for name, n in total.items() if all(name in limits for limits in each)}
    total |= _limits(spec, quality)
    overhead = amounts_of(spec.child("overhead"), quality)
    return {name: n + overhead.get(name, 0) for name, n in total.items()}


def _requests(item: Item, quality: QualityLog) -> dict[str, Fraction]:
    return amounts_of(item.child("resources").child("requests"), quality)


def _limits(item: Item, quality: QualityLog) -> dict[str, Fraction]:
    return amounts_of(item.child("resources").child("limits"), quality)


def _over_containers(spec: Item, of: Callable[[Item], dict[str, Fraction]]) -> dict[str, Fraction]:
    """Return the most a pod needs at any time of its life (the rule of KEP-753, sidecar containers).

    Containers run together with sidecars (init containers that restart always); other init containers run one after
    another before that, beside the sidecars started so far.
    """
    sidecars: dict[str, Fraction] = {}
    starting: dict[str, Fraction] = {}
    for container in spec.children("initContainers"):
        needed = _sum([sidecars, of(container)])
        starting = _most(starting, needed)
        if container.text("restartPolicy") == "Always":
            sidecars = needed
    return _most(starting, _sum([sidecars, *(of(container) for container in spec.children("containers"))]))


def _sum(parts: Iterable[Amounts]) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for part in parts:
        for name, n in part.items():
            total[name] = total.get(name, Fraction(0)) + n
    return total


def _most(a: Amounts, b: Amounts) -> dict[str, Fraction]:
    return {name: max(a.get(name, Fraction(0)), b.get(name, Fraction(0))) for name in {**a, **b}}


def cpu_milli(amounts: Amounts) -> int | None:
    """Return milli-cores, rounded up; None where no CPU is named."""
    return math.ceil(amounts["cpu"] * CORE_MILLI) if "cpu" in amounts else None


def mib(amounts: Amounts, name: str) -> int | None:
    """Return the MiB of a resource in bytes, rounded up; None where it is not named."""
    return math.ceil(amounts[name] / _MIB) if name in amounts else None


def gpus(amounts: Amounts) -> Gpus:
    """Return the GPUs among the amounts: whole ones, or MIG instances as shares of a GPU."""
    whole = math.ceil(sum((n for name, n in amounts.items() if name in WHOLE_GPUS), Fraction(0)))
    parts = [(math.ceil(n), part) for name, n in amounts.items() if n and (part := _mig_of(name))]
    return gpus_of(whole, parts)


def _mig_of(name: str) -> MigInstance | None:
    return mig_instance(name.removeprefix(_MIG)) if name.startswith(_MIG) else None


def others(amounts: Amounts) -> list[str]:
    """Return the names of resources that the trace has no column for."""
    known = _PLAIN | WHOLE_GPUS
    return [name for name, n in amounts.items() if n and name not in known and not _mig_of(name)]
