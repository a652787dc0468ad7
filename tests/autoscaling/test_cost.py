"""The bill adds up: parts to the total, allocated and idle to what is paid, tenants to compute."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gputwin.autoscaling.cost import Instances, Prices, Purchase, bill, one_price, split_purchases
from gputwin.core.errors import UserError

PRICES = Prices(
    {"a100": {Purchase.ON_DEMAND: 4.0, Purchase.SPOT: 1.0, Purchase.RESERVED: 2.5}, "t4": {Purchase.ON_DEMAND: 0.5}},
    storage_per_gib_month=0.1,
    network_per_gib=0.02,
    penalty_per_second=0.01,
)


def test_a_bill_worked_by_hand() -> None:
    groups = [
        Instances(np.array([7200.0, 3600.0]), np.array([3600.0, 3600.0]), "a100", Purchase.ON_DEMAND, 100.0),
        Instances(np.array([36000.0]), np.array([0.0]), "t4"),
    ]
    cost = bill(
        groups,
        PRICES,
        response_seconds=np.array([1.0, 3.5, 2.0, np.nan]),
        target_seconds=2.0,
        network_gib=50.0,
        used_by_tenant={"x": 3.0, "y": 1.0},
    )
    assert cost.compute == pytest.approx(3 * 4.0 + 10 * 0.5)
    assert cost.allocated == pytest.approx(8.0)
    assert cost.storage == pytest.approx(100 * 3 / 730 * 0.1)
    assert cost.network == pytest.approx(1.0)
    assert cost.penalty == pytest.approx(1.5 * 0.01)
    assert cost.total == pytest.approx(17 + cost.storage + 1 + 0.015)
    assert cost.by_tenant_allocation == pytest.approx({"x": 12.75, "y": 4.25})
    assert cost.by_tenant_use == pytest.approx({"x": 6.0, "y": 2.0})


LIVES = st.lists(st.tuples(st.floats(0, 5000), st.floats(0, 5000), st.floats(0, 1)), min_size=1, max_size=20)


# A busy machine draws slowly; that is no fault of the code.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LIVES, st.integers(0, 5), st.floats(0, 1))
def test_allocated_and_idle_are_what_is_paid(
    lives: list[tuple[float, float, float]], reserved: int, spot: float
) -> None:
    launched, paid, share = (np.array(c) for c in zip(*lives, strict=True))
    span = 10_000.0
    groups = split_purchases(launched, paid, paid * share, span, reserved=reserved, spot_share=spot, node_type="a100")
    cost = bill(groups, PRICES, used_by_tenant={"x": 1.0, "y": 2.0})
    paid_for = sum(g.paid_seconds.sum() * PRICES.hour("a100", g.purchase) / 3600 for g in groups)
    assert cost.allocated + cost.idle == pytest.approx(paid_for)
    assert cost.idle >= -1e-9
    assert sum(cost.by_tenant_allocation.values()) == pytest.approx(cost.compute)
    assert sum(cost.by_tenant_use.values()) == pytest.approx(cost.allocated)
    # Work is neither lost nor made by how it is bought; reserved nodes are paid for the whole span.
    assert sum(g.allocated_seconds.sum() for g in groups) == pytest.approx((paid * share).sum())
    for group in groups:
        if group.purchase is Purchase.RESERVED:
            assert np.all(group.paid_seconds == span)


def test_reserved_nodes_serve_first_and_half_of_the_rest_is_spot() -> None:
    launched, paid = np.array([0.0, 0.0, 0.0, 100.0]), np.array([100.0, 50.0, 50.0, 50.0])
    groups = split_purchases(launched, paid, paid, 200.0, reserved=1, spot_share=0.5, node_type="a100")
    seconds = {g.purchase: float(g.paid_seconds.sum()) for g in groups}
    assert seconds == {Purchase.RESERVED: 200.0, Purchase.ON_DEMAND: 50.0, Purchase.SPOT: 50.0}


def test_mistakes_are_said() -> None:
    with pytest.raises(UserError, match="no price for node type 'h100'; there are: a100, t4"):
        PRICES.hour("h100")
    with pytest.raises(UserError, match="no spot price for 't4'; there are: on-demand"):
        PRICES.hour("t4", Purchase.SPOT)
    with pytest.raises(UserError, match="not negative"):
        one_price(-1.0)
