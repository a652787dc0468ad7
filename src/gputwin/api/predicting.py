"""How many nodes, what theory says, how long jobs run, what demand comes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gputwin.api.inputs import PathText, cluster_of, public, trace_of

if TYPE_CHECKING:
    from gputwin.forecasting.study import ForecastStudy
    from gputwin.optimization.capacity.plan import Plan
    from gputwin.profiling.predict import Predictions
    from gputwin.profiling.profile import Profile
    from gputwin.simulation.cluster import Cluster
    from gputwin.studies.validation.threeway import ThreeWay
    from gputwin.traces.dataset import Trace


@public
def plan(
    trace: Trace | PathText | Sequence[PathText],
    cluster: Cluster | PathText | None = None,
    target: str = "p95_wait=600",
    **settings: Any,
) -> Plan:
    """Return the least number of such nodes that safely meets a wait target, in seconds.

    `settings`: `growth`, `confidence`, `by_model`, `what_if`, `workers`, and `scenario` with the rules and the seed.

    >>> import gputwin
    >>> found = gputwin.plan("synthetic:pai2020?jobs=200", "homogeneous:4x8", "p95_wait=1h", workers=1)
    >>> found.answer.nodes > 0
    True
    """
    from gputwin.optimization.capacity.plan import plan as planned

    opened = trace_of(trace)
    return planned(opened, cluster_of(cluster, opened), target, **settings)


@public
def queueing(
    trace: Trace | PathText | Sequence[PathText], cluster: Cluster | PathText | None = None, **settings: Any
) -> ThreeWay:
    """Return what queueing theory says compared with simulation and trace, and which of its assumptions breaks.

    >>> import gputwin
    >>> gputwin.queueing("synthetic:pai2020?jobs=200", "homogeneous:4x8").gpus
    32
    """
    from gputwin.studies.validation.threeway import compare as compared

    opened = trace_of(trace)
    return compared(opened, cluster_of(cluster, opened), **settings)


@public
def profile(trace: Trace | PathText | Sequence[PathText], **settings: Any) -> Profile:
    """Return job classes and a model of how long jobs run, tested in time order. `settings`: `models`, `seed`.

    >>> import gputwin
    >>> found = gputwin.profile("synthetic:pai2020?jobs=300", models=["group-median"])
    >>> found.chosen
    'group-median'
    """
    from gputwin.profiling.profile import profile as profiled

    return profiled(trace_of(trace), **settings)


@public
def predict(model: Profile | PathText, trace: Trace | PathText | Sequence[PathText]) -> Predictions:
    """Return how long the jobs of a trace will run, by a profile or a saved model; `simulate(predict=….frame)` takes it.

    >>> import gputwin
    >>> model = gputwin.profile("synthetic:pai2020?jobs=300", models=["group-median"])
    >>> gputwin.predict(model, "synthetic:pai2020?jobs=50&seed=1").frame["predicted_seconds"].min() > 0
    True
    """
    from gputwin.profiling.predict import predict_trace
    from gputwin.profiling.profile import Profile
    from gputwin.profiling.store import load

    saved = model.saved() if isinstance(model, Profile) else load(Path(model))
    return predict_trace(saved, trace_of(trace))


@public
def forecast(trace: Trace | PathText | Sequence[PathText], target: str = "arrivals", **settings: Any) -> ForecastStudy:
    """Return the demand of the next hours, backtested against the last value. `target`: `arrivals` or `in-force`.

    `settings`: `horizon_seconds`, `bin_seconds`, `resources`, `by`, `models`, `seed` and the others of
    `gputwin.forecasting.study.forecast`.

    >>> import gputwin
    >>> study = gputwin.forecast("synthetic:philly?jobs=2000", bin_seconds=3600, models=["mean", "naive"])
    >>> study.forecast.frame.height > 0
    True
    """
    from gputwin.forecasting.study import forecast as forecasted

    return forecasted(trace_of(trace), target, **settings)
