"""Which sequences worked by hand cover which rule; those of node pools are in tests/autoscaling/pools/test_by_hand.py."""

from __future__ import annotations

from gputwin.autoscaling.decisions.registry import RULES
from tests.autoscaling.decisions import test_by_hand as worked

BY_HAND = {
    "threshold": (worked.test_threshold, worked.test_threshold_up_if_any_down_if_all),
    "hpa": (worked.test_hpa, worked.test_hpa_takes_the_maximum_and_floors_utilisation, worked.test_hpa_policies),
    "keda": (worked.test_keda, worked.test_keda_idle_fallback_and_formula),
    "keda-job": (worked.test_keda_jobs,),
    "knative": (worked.test_knative, worked.test_knative_keeps_its_own_windows),
    "step": (worked.test_step,),
    "velocity": (worked.test_velocity,),
    "cooldown": (worked.test_cooldown,),
    "backoff": (worked.test_backoff,),
    "bounds": (worked.test_bounds_and_warm_pool,),
    "scheduled": (worked.test_scheduled,),
    "predictive": (worked.test_predictive,),
    "hybrid": (worked.test_hybrid,),
}


def test_every_rule_has_a_sequence_worked_by_hand() -> None:
    assert set(BY_HAND) == set(RULES.names())
    assert all(BY_HAND.values())
