"""Published figures of the DLRM trace's demand."""

from __future__ import annotations

import pytest

from gputwin.forecasting.backtest import backtest, schedule
from gputwin.forecasting.demand import demand
from gputwin.forecasting.metrics import concentration, relative_rmse
from gputwin.traces.locate import open_trace

ARRIVALS = {
    "zero": (2.67, 6.37, 2.67, 5.08, 2.43),
    "mean": (2.48, 6.30, 2.47, 5.05, 2.22),
    "naive": (2.96, 8.67, 2.95, 6.91, 2.80),
}
IN_FORCE_PERCENT = {1: (0.07, 0.12), 12: (0.18, 0.28)}


@pytest.fixture(scope="module")
def trace(real_data):
    return open_trace(str(real_data / "alibaba_v2025_dlrm" / "disaggregated_DLRM_trace.csv.gz"))


def test_arrivals_of_zero_mean_and_naive_to_two_decimals(trace):
    series = demand(trace, "arrivals")
    assert len(series) == 8926
    assert series.names == ("cpu", "gpu", "memory", "rdma", "disk")
    assert (series.values == 0).mean(axis=0)[:2] == pytest.approx([0.5, 0.85], abs=0.01)
    tested = backtest(series, (1,), list(ARRIVALS), plan=schedule(len(series), 0.2, test_refits=1))
    rows = tested.rows(1, test=True)
    for name, published in ARRIVALS.items():
        ours = relative_rmse(tested.actuals[rows, 0], tested.forecasts[name][rows, 0])
        assert [round(float(x), 2) for x in ours] == list(published), name
    worst = concentration(tested.actuals[rows, 0] - tested.forecasts["mean"][rows, 0])
    assert worst.min() > 0.5
    assert worst.max() < 0.95


def test_the_last_value_of_demand_in_force(trace):
    series = demand(trace, "in-force", resources=["cpu", "gpu"])
    tested = backtest(series, tuple(IN_FORCE_PERCENT), ["naive"])
    for i, (lead, published) in enumerate(IN_FORCE_PERCENT.items()):
        rows = tested.rows(lead, test=True)
        ours = 100 * relative_rmse(tested.actuals[rows, i], tested.forecasts["naive"][rows, i])
        assert [round(float(x), 2) for x in ours] == list(published)
