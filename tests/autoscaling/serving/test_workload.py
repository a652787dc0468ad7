"""Real traces become requests that can be simulated: durations, tokens, or rates of clients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gputwin.autoscaling.serving.simulator import Simulator
from gputwin.autoscaling.serving.system import Engine, Slots
from gputwin.autoscaling.serving.workload import service_of
from gputwin.autoscaling.serving.world import N_LOADS
from gputwin.core.errors import UserError
from gputwin.traces.locate import open_trace

GENAI = ("lora_request_trace", "basemodel_update_latency_anon", "lora_update_latency_anon")


def test_images_have_durations_models_and_adapters(real_data: Path) -> None:
    trace = open_trace([str(real_data / "alibaba_v2026_genai" / f"{name}.csv.gz") for name in GENAI])
    service = service_of(trace)
    load = service.load
    # 26,823 requests, of which 33 had not ended.
    assert len(load) == 26_790
    assert service.system == Slots(1)
    assert load.service is not None
    assert load.service.mean() == pytest.approx(28.7, abs=0.1)
    assert load.model is not None
    assert load.adapter is not None
    assert load.model_load is not None
    assert np.unique(load.model[load.model >= 0]).size == 86
    assert np.mean(load.adapter >= 0) == pytest.approx(4494 / 26_823, abs=0.002)
    # The publisher's load times of base models: mean 22.0 s.
    assert load.model_load.mean() == pytest.approx(22.0, abs=0.3)
    without = service_of(trace, adapters=False).load
    assert without.model is None
    runs = [Simulator(x.between(0, 4e5), Slots(), replicas=3) for x in (load, without)]
    for run in runs:
        run.finish()
    assert runs[0].world.counters[N_LOADS] > 0
    assert np.nanmean(runs[0].latencies()) > np.nanmean(runs[1].latencies()) + 5


def test_conversations_have_tokens(real_data: Path) -> None:
    trace = open_trace([str(real_data / "azure_llm_2023" / "AzureLLMInferenceTrace_conv.csv.gz")])
    service = service_of(trace)
    assert isinstance(service.system, Engine)
    assert len(service.load) == 19_366
    assert service.load.output_tokens is not None
    assert service.load.output_tokens.mean() == pytest.approx(211.1, abs=0.1)
    for factor in (0.25, 2.5):
        scaled = service_of(trace, load_factor=factor).load
        assert len(scaled) == pytest.approx(factor * 19_366, rel=0.02)
        assert np.all(np.diff(scaled.arrival) >= 0)
        assert scaled.output_tokens is not None
        assert scaled.output_tokens.mean() == pytest.approx(211.1, rel=0.03)


def test_rates_of_clients_become_requests(real_data: Path) -> None:
    trace = open_trace([str(real_data / "servegen" / "reason_deepseek-r1_client_rates.csv.gz")])
    service = service_of(trace, load_factor=0.1, service_seconds=4.0)
    assert service.span == 86_400.0
    # 16.01 requests per second by the publisher's rates.
    assert len(service.load) == pytest.approx(0.1 * 16.0147 * 86_400, rel=0.02)
    assert service.load.service is not None
    assert service.load.service.mean() == pytest.approx(4.0, rel=0.02)
    gaps = np.diff(service.load.arrival)
    assert gaps.std() / gaps.mean() > 1.1
    again = service_of(trace, load_factor=0.1, service_seconds=4.0)
    np.testing.assert_array_equal(again.load.arrival, service.load.arrival)


def test_too_many_requests_are_refused_with_a_remedy(real_data: Path) -> None:
    trace = open_trace([str(real_data / "servegen" / "language_m-large_client_rates.csv.gz")])
    with pytest.raises(UserError, match="take a share with --load"):
        service_of(trace)
