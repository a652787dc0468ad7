"""What capacity costs: compute + storage + network + SLA penalty, and who of the tenants pays what.

Compute is Σ instance hours × price per hour; the penalty is Σ max(0, response time − target) × rate, over requests.
What is paid for compute is allocated (replicas at work on requests) or idle (booting, waiting for requests, reserved and
not started); the two always add up to what is paid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from gputwin.core.errors import UserError
from gputwin.core.units import HOUR

Floats = NDArray[np.float64]
MONTH_HOURS = 730.0


class Purchase(StrEnum):
    """How a node is bought."""

    ON_DEMAND = "on-demand"
    RESERVED = "reserved"
    """Paid whether it runs or not."""
    SPOT = "spot"


@dataclass(frozen=True)
class Prices:
    """Prices in one currency, per node type and purchase kind."""

    per_hour: Mapping[str, Mapping[Purchase, float]]
    """Node type → purchase kind → price of an hour."""
    storage_per_gib_month: float = 0.0
    network_per_gib: float = 0.0
    penalty_per_second: float = 0.0
    """Per request and second beyond the target."""

    def __post_init__(self) -> None:
        amounts = [p for kinds in self.per_hour.values() for p in kinds.values()]
        amounts += [self.storage_per_gib_month, self.network_per_gib, self.penalty_per_second]
        if not all(0 <= a < math.inf for a in amounts):
            raise UserError("prices must be finite and not negative")

    def hour(self, node_type: str, purchase: Purchase = Purchase.ON_DEMAND) -> float:
        """Return the price of an hour; a UserError names the prices there are."""
        kinds = self.per_hour.get(node_type)
        if kinds is None:
            raise UserError(f"no price for node type '{node_type}'; there are: {', '.join(self.per_hour)}")
        if purchase not in kinds:
            raise UserError(f"no {purchase} price for '{node_type}'; there are: {', '.join(kinds)}")
        return kinds[purchase]


def one_price(per_hour: float, penalty_per_second: float = 0.0) -> Prices:
    """Return prices with one node type, `replica`, bought on demand."""
    return Prices({"replica": {Purchase.ON_DEMAND: per_hour}}, penalty_per_second=penalty_per_second)


@dataclass(frozen=True)
class Instances:
    """Instances of one node type and purchase kind: seconds each was paid for, and seconds of them at work."""

    paid_seconds: Floats
    allocated_seconds: Floats
    node_type: str = "replica"
    purchase: Purchase = Purchase.ON_DEMAND
    storage_gib: float = 0.0
    """Per instance, paid as long as the instance is."""

    def __post_init__(self) -> None:
        if np.any(self.allocated_seconds > self.paid_seconds * (1 + 1e-9) + 1e-6):
            raise ValueError("an instance worked longer than it was paid for")


@dataclass(frozen=True)
class Cost:
    """A bill; `compute` = `allocated` + `idle`."""

    allocated: float
    idle: float
    storage: float
    network: float
    penalty: float
    by_tenant_allocation: Mapping[str, float] = field(default_factory=dict)
    """Compute split over tenants by their share of use, idle time included: adds up to `compute`."""
    by_tenant_use: Mapping[str, float] = field(default_factory=dict)
    """Compute of the time each tenant used: adds up to `allocated`; idle time is the operator's."""

    @property
    def compute(self) -> float:
        """Return what is paid for instances."""
        return self.allocated + self.idle

    @property
    def total(self) -> float:
        """Return the whole bill: compute, storage, network and penalty."""
        return self.compute + self.storage + self.network + self.penalty


def bill(
    groups: Sequence[Instances],
    prices: Prices,
    *,
    response_seconds: Floats | None = None,
    target_seconds: float = math.inf,
    network_gib: float = 0.0,
    used_by_tenant: Mapping[str, float] | None = None,
) -> Cost:
    """Return the bill of these instances and responses (NaN: none came, so none is late).

    `used_by_tenant` gives each tenant's share of the work, in any unit.
    """
    allocated = idle = storage = 0.0
    for group in groups:
        price = prices.hour(group.node_type, group.purchase) / HOUR
        used, paid = float(group.allocated_seconds.sum()), float(group.paid_seconds.sum())
        used = min(used, paid)
        allocated += used * price
        idle += (paid - used) * price
        storage += group.storage_gib * paid / HOUR / MONTH_HOURS * prices.storage_per_gib_month
    late = 0.0
    if response_seconds is not None and math.isfinite(target_seconds):
        late = float(np.nansum(np.maximum(response_seconds - target_seconds, 0.0)))
    shares = _shares(used_by_tenant or {})
    return Cost(
        allocated,
        idle,
        storage,
        network_gib * prices.network_per_gib,
        late * prices.penalty_per_second,
        {t: s * (allocated + idle) for t, s in shares.items()},
        {t: s * allocated for t, s in shares.items()},
    )


def _shares(used: Mapping[str, float]) -> dict[str, float]:
    total = math.fsum(used.values())
    return {t: u / total for t, u in used.items()} if total > 0 else {}


def split_purchases(
    launched: Floats,
    paid_seconds: Floats,
    allocated_seconds: Floats,
    span_seconds: float,
    *,
    reserved: int = 0,
    spot_share: float = 0.0,
    node_type: str = "replica",
) -> list[Instances]:
    """Return replica lives as bought: `reserved` are paid for the whole span, a share of the rest is spot.

    Each life runs on a reserved node where one is free at its launch; of the others every so-many-th is spot.
    """
    if reserved < 0 or not 0 <= spot_share <= 1:
        raise UserError("reserved nodes are at least 0, and the spot share lies between 0 and 1")
    free_from = [0.0] * reserved
    on_reserved = np.zeros(len(launched), dtype=bool)
    for i in np.argsort(launched, kind="stable"):
        fitting = [k for k, free in enumerate(free_from) if free <= launched[i] + 1e-9]
        if fitting:
            free_from[fitting[0]] = launched[i] + paid_seconds[i]
            on_reserved[i] = True
    rest = np.flatnonzero(~on_reserved)
    on_spot = np.zeros(len(launched), dtype=bool)
    if rest.size:
        counted = np.floor((np.arange(rest.size) + 1) * spot_share + 1e-9)
        on_spot[rest] = np.diff(counted, prepend=0.0) > 0
    groups = []
    if reserved:
        used = float(allocated_seconds[on_reserved].sum())
        each = np.full(reserved, used / reserved)
        groups.append(Instances(np.full(reserved, span_seconds), each, node_type, Purchase.RESERVED))
    for chosen, purchase in ((on_spot, Purchase.SPOT), (~on_reserved & ~on_spot, Purchase.ON_DEMAND)):
        if chosen.any():
            groups.append(Instances(paid_seconds[chosen], allocated_seconds[chosen], node_type, purchase))
    return groups
