"""Neural networks over a look-back window: LSTM, stacked LSTM, GRU, Transformer encoder, and the plain LSTM baseline.

All series go in together (multivariate) where they are few; where they are many, one network with shared weights sees
each alone, all in one batch. Levels may leave the range of the training part: windows are taken relative to their own
last value (levels) or to their own mean and spread (reversible normalisation, Kim et al., ICLR 2022).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gputwin.core.errors import UserError
from gputwin.core.extras import require
from gputwin.forecasting.calendar import calendar
from gputwin.forecasting.models._model import MODELS, Model, Spec, floor_of, interpolated
from gputwin.forecasting.models._networks import build
from gputwin.forecasting.models._training import Curve, Rules, Samples, train
from gputwin.forecasting.series import DemandSeries, Floats, Integers

_MOST_TOGETHER = 8
_MOST_SAMPLES = 20_000
_BATCH = 4096
NORMALISATIONS = ("auto", "difference", "reversible", "standard", "min-max")


class Neural(Model):
    """A recurrent network or Transformer encoder; direct for all leads, mean and quantiles."""

    shortest = 100

    def __init__(
        self,
        kind: str = "lstm",
        lookback: int = 24,
        units: int = 32,
        layers: int = 1,
        dropout: float = 0.2,
        rate: float = 2e-3,
        weight_decay: float = 1e-3,
        epochs: int = 30,
        patience: int = 5,
        batch: int = 256,
        normalise: str = "auto",
        quantile_weight: float = 0.5,
        with_calendar: bool = True,
        seed: int = 0,
    ) -> None:
        self.kind = kind
        self.lookback = lookback
        self.units = units
        self.layers = layers
        self.dropout = dropout
        self.rate = rate
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.batch = batch
        self.normalise = normalise
        self.quantile_weight = quantile_weight
        self.with_calendar = with_calendar
        self.seed = seed

    def _learn(self, series: DemandSeries, leads: Sequence[int]) -> None:
        torch = require("torch", extra="neural")
        if len(series) < self.lookback + max(leads) + 20:
            raise UserError(f"a history of {len(series)} bins is too short for a look-back of {self.lookback}")
        wide = len(series.names)
        self.together_ = wide <= _MOST_TOGETHER
        self.method_ = self._method(series)
        self.floor_ = floor_of(series)
        self._scale(series, leads)
        origins = np.arange(self.lookback, len(series) - max(leads) + 1, dtype=np.int64)
        step = max(1, -(-len(origins) * (1 if self.together_ else wide) // _MOST_SAMPLES))
        origins = origins[::step]
        at = origins[:, None] + np.asarray(leads, dtype=np.int64)[None, :] - 1
        window, ahead, base, spread = self._inputs(series, origins, leads)
        wanted = (series.values[at] - base[:, None, :]) / (spread[:, None, :] * self.lead_scale_[None])
        samples = self._batched(window, ahead, wanted)
        # Few samples in large batches would be few steps, and training would stop before it began.
        batch = min(self.batch, max(16, len(samples.wanted) // 20))
        rules = Rules(
            self.epochs, batch, self.rate, self.weight_decay, self.patience, self.quantile_weight,
            gap=-(-max(leads) // step), seed=self.seed,
        )  # fmt: skip
        with _one_thread(torch), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.network_ = self._network(samples)
            self.curve_ = train(self.network_, samples, rules)

    def _network(self, samples: Samples) -> Any:
        self.shape_ = (samples.window.shape[2], samples.ahead.shape[1], samples.wanted.shape[1])
        inputs, known, outputs = self.shape_
        return build(
            self.kind, inputs=inputs, known=known, outputs=outputs, lookback=self.lookback,
            units=self.units, layers=self.layers, dropout=self.dropout,
        )  # fmt: skip

    def _method(self, series: DemandSeries) -> str:
        if self.normalise not in NORMALISATIONS:
            raise UserError(f"unknown normalisation '{self.normalise}'; known: {', '.join(NORMALISATIONS)}")
        if self.normalise != "auto":
            return self.normalise
        return "difference" if series.is_level else "standard"

    def _scale(self, series: DemandSeries, leads: Sequence[int]) -> None:
        """Learn shift and scale from the history alone."""
        values = series.values
        self.varies_ = (values.max(axis=0) > values.min(axis=0)).astype(np.float64)
        self.lead_scale_ = np.ones((len(leads), values.shape[1]))
        if self.method_ == "difference":
            self.shift_ = np.zeros(values.shape[1])
            self.scale_ = _positive(np.diff(values, axis=0).std(axis=0))
            for i, lead in enumerate(leads):
                # A change over a day is larger than one over five minutes; the network sees both as about one.
                self.lead_scale_[i] = _positive((values[lead:] - values[:-lead]).std(axis=0) / self.scale_)
        elif self.method_ == "min-max":
            self.shift_ = values.min(axis=0)
            self.scale_ = _positive(values.max(axis=0) - self.shift_)
        else:
            self.shift_, self.scale_ = values.mean(axis=0), _positive(values.std(axis=0))

    def _inputs(
        self, series: DemandSeries, origins: Integers, leads: Sequence[int]
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return windows (n × lookback × series), calendar of the targets, and base and spread to turn outputs back."""
        rows = np.maximum(origins[:, None] - self.lookback + np.arange(self.lookback)[None, :], 0)
        window = series.values[rows]
        base = np.repeat(self.shift_[None], len(origins), axis=0)
        spread = np.repeat(self.scale_[None], len(origins), axis=0)
        if self.method_ == "difference":
            base = window[:, -1]
            # Far back a level may be many steps away; the network needs its direction more than its size.
            window = np.arcsinh((window - base[:, None, :]) / spread[:, None, :])
        else:
            if self.method_ == "reversible":
                base = window.mean(axis=1)
                spread = np.maximum(window.std(axis=1), 0.1 * self.scale_)
            window = (window - base[:, None, :]) / spread[:, None, :]
        ahead = np.zeros((len(origins), 0))
        if self.with_calendar:
            clock = calendar(series, 0, int(origins.max()) + max(leads)).features()
            ahead = clock[origins + max(leads) - 1]
        return window, ahead, base, spread

    def _batched(self, window: Floats, ahead: Floats, wanted: Floats) -> Samples:
        """Return samples of all series together, or one per series, those of one time side by side."""
        count, back, wide = window.shape
        if self.together_:
            return Samples(window, ahead, wanted.reshape(count, -1))
        return Samples(
            window.transpose(0, 2, 1).reshape(count * wide, back, 1),
            np.repeat(ahead, wide, axis=0),
            wanted.transpose(0, 2, 1).reshape(count * wide, -1),
        )

    def predict_at(self, series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
        """Return the network's mean at each origin."""
        return interpolated(self._outputs(series, origins)[..., 0], self.leads_, leads)

    def quantiles_at(self, series: DemandSeries, origins: Integers) -> Floats:
        """Return origins × leads × series × levels of the network's own quantile head."""
        return np.sort(self._outputs(series, origins)[..., 1:], axis=3)

    def _outputs(self, series: DemandSeries, origins: Integers) -> Floats:
        torch = require("torch", extra="neural")
        window, ahead, base, spread = self._inputs(series, origins, self.leads_)
        wide, count = len(series.names), len(origins)
        samples = self._batched(window, ahead, np.zeros((count, len(self.leads_), wide)))
        parts = []
        with _one_thread(torch), torch.no_grad():
            for low in range(0, len(samples.window), _BATCH):
                part = [np.ascontiguousarray(x[low : low + _BATCH], dtype=np.float32) for x in samples[:2]]
                parts.append(self.network_(*map(torch.from_numpy, part)).numpy().astype(np.float64))
        made = np.concatenate(parts)
        if self.together_:
            made = made.reshape(count, len(self.leads_), wide, -1)
        else:
            made = made.reshape(count, wide, len(self.leads_), -1).transpose(0, 2, 1, 3)
        # What never changed goes on as it is, whatever the network says.
        spread = spread * self.varies_
        made = made * (spread[:, None, :] * self.lead_scale_[None])[..., None] + base[:, None, :, None]
        return np.asarray(np.maximum(made, self.floor_[None, None, :, None]))

    def state(self) -> dict[str, Any]:
        """Return what was learned; weights as arrays."""
        kept = {k: v for k, v in super().state().items() if k not in ("network_", "curve_")}
        weights = {k: v.numpy() for k, v in self.network_.state_dict().items()}
        return {**kept, "weights_": weights, "curve_": self.curve_._asdict()}

    def restore(self, state: Mapping[str, Any], series: DemandSeries) -> Neural:
        """Take over a saved state."""
        torch = require("torch", extra="neural")
        super().restore({k: v for k, v in state.items() if k != "weights_"}, series)
        self.curve_ = Curve(**state["curve_"])
        inputs, known, outputs = (int(n) for n in self.shape_)
        with torch.random.fork_rng(devices=[]):
            self.network_ = build(
                self.kind, inputs=inputs, known=known, outputs=outputs, lookback=self.lookback,
                units=self.units, layers=self.layers, dropout=self.dropout,
            )  # fmt: skip
        self.network_.load_state_dict({k: torch.from_numpy(np.array(v)) for k, v in state["weights_"].items()})
        self.network_.eval()
        return self


class _one_thread:  # noqa: N801
    """Torch on one thread while it lasts: results do not depend on the machine, and small networks gain nothing."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def __enter__(self) -> None:
        self.before = self.torch.get_num_threads()
        self.torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        self.torch.set_num_threads(self.before)


def _positive(values: Floats) -> Floats:
    """Return the values with ones in place of zeros, to divide by."""
    return np.where(values > 0, values, 1.0)


def baseline_lstm(**parameters: Any) -> Neural:
    """Return the plain multivariate LSTM: min-max scaling, look-back 12, nothing against overfitting."""
    plain: dict[str, Any] = {
        "lookback": 12, "units": 50, "dropout": 0.0, "weight_decay": 0.0, "rate": 1e-3, "epochs": 10, "patience": 0,
        "batch": 64, "normalise": "min-max", "quantile_weight": 0.0, "with_calendar": False,
    }  # fmt: skip
    return Neural(**{**plain, **parameters})


def _spec(name: str, make: Any, summary: str, complexity: int) -> Spec:
    return Spec(name, make, summary, complexity, "neural", "torch", costly=2)


MODELS.add(_spec("lstm-baseline", baseline_lstm, "plain LSTM, min-max scaling, look-back 12, no regularisation", 12))
MODELS.add(_spec("lstm", Neural, "LSTM with dropout, weight decay, early stopping, quantiles", 13))
MODELS.add(_spec("gru", lambda **p: Neural(**{"kind": "gru", **p}), "the same with GRU cells", 13))
MODELS.add(_spec("lstm-stacked", lambda **p: Neural(**{"layers": 2, **p}), "two LSTM layers", 14))
MODELS.add(
    _spec("transformer", lambda **p: Neural(**{"kind": "transformer", **p}), "Transformer encoder, one block", 15)
)
