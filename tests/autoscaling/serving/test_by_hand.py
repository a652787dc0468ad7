"""Small runs worked by hand: cold start, drain, queue limit, adapters, and steps of continuous batching."""

from __future__ import annotations

import numpy as np
import pytest

from gputwin.autoscaling.serving.simulator import Simulator
from gputwin.autoscaling.serving.system import Engine, Load, Slots
from gputwin.autoscaling.serving.world import N_LOADS, N_PREEMPTED
from gputwin.core.errors import UserError


def load(*arrivals: float, **more: object) -> Load:
    return Load(np.array(arrivals, dtype=float), **{k: np.array(v) for k, v in more.items()})  # type: ignore[arg-type]


def finishes(run: Simulator) -> list[float]:
    run.finish()
    return [round(float(t), 9) for t in run.world.requests.finish]


def test_a_replica_that_boots_serves_when_it_is_ready() -> None:
    run = Simulator(load(0, 1, 2, service=[4.0, 4, 4]), Slots(), replicas=1, boot_seconds=3.0)
    run.advance(2.0)
    run.scale(2)
    # The second replica is ready at 5; the first ends its request at 4 and takes the next, whose end is 8.
    assert finishes(run) == [4.0, 8.0, 9.0]


def test_a_replica_drains_before_it_stops() -> None:
    run = Simulator(load(0, 0, 1, service=[5.0, 5, 1]), Slots(), replicas=2)
    run.advance(2.0)
    run.scale(1)
    assert run.states() == (1, 0, 1)
    # Both work on; only one takes the third at 5.
    assert finishes(run) == [5.0, 5.0, 6.0]
    lives = sorted(run.lives().tolist(), key=lambda r: r[3])
    assert [life[2] for life in lives] == [2.0, -1.0]
    assert lives[0][3] == 5.0


def test_a_replica_that_still_boots_goes_first_and_at_once() -> None:
    run = Simulator(load(0, service=[10.0]), Slots(), replicas=1, boot_seconds=60.0)
    run.scale(3)
    run.advance(5.0)
    run.scale(1)
    assert run.states() == (1, 0, 0)
    # The boots that were broken off leave nothing behind.
    run.scale(2)
    run.advance(64.0)
    assert run.states() == (1, 1, 0)
    run.advance(65.0)
    assert run.states() == (2, 0, 0)


def test_a_full_queue_turns_away() -> None:
    run = Simulator(load(0, 1, 2, service=[9.0, 1, 1]), Slots(), replicas=1, queue_limit=1)
    assert finishes(run) == [9.0, 10.0, 2.0]
    assert run.refused().tolist() == [False, False, True]
    assert np.isnan(run.latencies()[2])


def test_a_replica_with_the_adapter_is_preferred_and_another_loads_it() -> None:
    run = Simulator(
        load(
            0,
            0,
            20,
            20,
            40,
            service=[1.0] * 5,
            model=[0, 1, 1, 0, 0],
            adapter=[-1, -1, -1, 7, 7],
            model_load=[10.0] * 5,
            adapter_load=[3.0] * 5,
        ),
        Slots(),
        replicas=2,
    )
    # Both load a base model at first; then each request finds its own, and the adapter is loaded once.
    assert finishes(run) == [11.0, 11.0, 21.0, 24.0, 41.0]
    assert run.world.counters[N_LOADS] == 2


ENGINE = Engine(1.0, 0.1, 0.01, sequences=2, batched_tokens=10)


def test_a_long_prompt_is_computed_in_chunks_beside_decoding() -> None:
    run = Simulator(load(0, 0.5, input_tokens=[5, 12], output_tokens=[3, 1]), ENGINE, replicas=1)
    # Step 1: 5 prompt tokens, 1.5 s. Step 2: one decodes, 9 of 12 prompt tokens, 1.91 s. Step 3: one decodes to its
    # end, the last 3 tokens and the first output, 1.31 s.
    assert finishes(run) == [4.72, 4.72]
    assert run.first_token_seconds().tolist() == pytest.approx([1.5, 4.22])


def test_sequences_are_limited() -> None:
    run = Simulator(load(0, 0, 0, input_tokens=[1, 1, 1], output_tokens=[1, 1, 1]), ENGINE, replicas=1)
    # The first starts a step by itself, the two others share the next.
    assert finishes(run) == pytest.approx([1.1, 2.3, 2.3])


def test_a_full_cache_sends_the_latest_back() -> None:
    engine = Engine(1.0, 0.0, 0.0, sequences=2, batched_tokens=10, cache_tokens=10)
    run = Simulator(load(0, 0, input_tokens=[4, 4], output_tokens=[4, 3]), engine, replicas=1)
    # Second 1: the first's prompt. 2: the second's, the first has 2 tokens: 6 + 5 > 10 once both decode, so the second
    # leaves. 3, 4: the first alone. 5: the second's 4 + 1 tokens anew, and its second token. 6: its third.
    assert finishes(run) == [4.0, 6.0]
    assert run.world.counters[N_PREEMPTED] == 1


def test_a_request_larger_than_the_cache_is_turned_away() -> None:
    engine = Engine(1.0, 0.0, 0.0, cache_tokens=10)
    run = Simulator(load(0, 0, input_tokens=[8, 4], output_tokens=[4, 4]), engine, replicas=1)
    assert finishes(run) == [0.0, 4.0]
    assert run.refused().tolist() == [True, False]


def test_two_replicas_share_arrivals() -> None:
    run = Simulator(load(0, 0, 0, 0, input_tokens=[1] * 4, output_tokens=[5] * 4), ENGINE, replicas=2)
    run.advance(0.5)
    assert run.world.replicas.busy[:2].tolist() == [1, 1]
    assert run.world.replicas.routed[:2].tolist() == [1, 1]


def test_mistakes_are_said() -> None:
    with pytest.raises(UserError, match="in order"):
        Simulator(load(1, 0, service=[1.0, 1]), Slots())
    with pytest.raises(UserError, match="no tokens"):
        Simulator(load(0, service=[1.0]), ENGINE)
    with pytest.raises(UserError, match="no service times"):
        Simulator(load(0, input_tokens=[1], output_tokens=[1]), Slots())


def test_arrays_that_cannot_be_written_are_no_other_type_to_the_compiler() -> None:
    """Columns of a frame are such; a loop compiled anew for them would take half a minute."""
    from gputwin.autoscaling.serving import slots

    def once(is_writable: bool) -> int:
        arrays = {"arrival": np.zeros(1), "service": np.ones(1)}
        for array in arrays.values():
            array.setflags(write=is_writable)
        run = Simulator(Load(**arrays), Slots())
        run.finish()
        return len(getattr(slots.advance, "signatures", ()))

    assert once(True) == once(False)
