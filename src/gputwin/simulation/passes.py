"""Which scheduling pass a run makes: the one of its backfill rule, unless tenants, preemption or a plan ask for another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gputwin.core.errors import UserError
from gputwin.simulation.engine.passes.fair import fair_greedy_pass, fair_strict_pass
from gputwin.simulation.engine.passes.fair_easy import fair_easy_pass
from gputwin.simulation.engine.passes.greedy import greedy_pass_with_limit
from gputwin.simulation.engine.passes.kueue import kueue_pass
from gputwin.simulation.engine.passes.planned import planned_pass
from gputwin.simulation.engine.passes.preemptive import greedy_preemptive_pass, strict_preemptive_pass
from gputwin.simulation.engine.passes.reclaim import reclaim_pass
from gputwin.simulation.engine.state.records import Records
from gputwin.simulation.engine.state.tenants import QUOTA_RECLAIM
from gputwin.simulation.engine.world import FAIR_EASY, FAIR_GREEDY, FAIR_STRICT, GREEDY, STRICT
from gputwin.simulation.policy import Backfill
from gputwin.simulation.policy_source import is_ours, named

_FAIR = {FAIR_STRICT: fair_strict_pass, FAIR_GREEDY: fair_greedy_pass, FAIR_EASY: fair_easy_pass}
_PREEMPTIVE = {STRICT: strict_preemptive_pass, GREEDY: greedy_preemptive_pass}
_ARGUMENTS = ("world", "now", "order", "promotion", "claim", "score", "devices", "turn", "gate")


def pass_of(settings: Records, backfill: Backfill, max_wait: float) -> Callable[..., None]:
    """Return the pass of a run with these settings of the engine; `max_wait`: the longest wait, s."""
    mode = int(settings["backfill"][0])
    if settings["planned"][0]:
        return planned_pass
    if settings["reclaims"][0]:
        return reclaim_pass if settings["reclaims"][0] == QUOTA_RECLAIM else kueue_pass
    if settings["preempts"][0]:
        return _PREEMPTIVE[mode]
    if mode in _FAIR:
        return _FAIR[mode]
    if mode == GREEDY and max_wait < np.inf:
        return greedy_pass_with_limit
    return backfill.schedule_pass if is_ours(backfill.schedule_pass) else _from_outside(backfill)


def _from_outside(backfill: Backfill) -> Callable[..., None]:
    """Return the pass of somebody else's rule, its machine code named after all its sources."""
    given = backfill.schedule_pass.__code__
    if given.co_argcount != len(_ARGUMENTS):
        raise UserError(
            f"backfill '{backfill.name}' takes {given.co_argcount} arguments; it must take {', '.join(_ARGUMENTS)}"
        )
    return named(backfill.schedule_pass)
