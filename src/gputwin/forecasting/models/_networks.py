"""The networks: a look-back window in, mean and quantiles per lead and series out. Needs torch; imported late."""

from __future__ import annotations

from typing import Any

from gputwin.core.extras import require

QUANTILES = (0.1, 0.5, 0.9)
KINDS = ("lstm", "gru", "transformer")


def build(
    kind: str, *, inputs: int, known: int, outputs: int, lookback: int, units: int, layers: int, dropout: float
) -> Any:
    """Return a network: windows (batch × lookback × inputs) and what is known of the targets (batch × known) in,
    batch × outputs × (mean and quantiles) out.

    LSTM: Hochreiter and Schmidhuber 1997; GRU: Cho et al. 2014; Transformer encoder: Vaswani et al. 2017.
    """
    torch = require("torch", extra="neural")
    nn = torch.nn
    between = dropout if layers > 1 else 0.0
    if kind == "lstm":
        body = nn.LSTM(inputs, units, layers, batch_first=True, dropout=between)
    elif kind == "gru":
        body = nn.GRU(inputs, units, layers, batch_first=True, dropout=between)
    else:
        block = nn.TransformerEncoderLayer(units, 4, 2 * units, dropout, batch_first=True, norm_first=True)
        encoder = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        body = nn.ModuleDict({"embed": nn.Linear(inputs, units), "encoder": encoder})
        body.register_parameter("place", nn.Parameter(0.02 * torch.randn(lookback, units)))

    class Network(nn.Module):  # type: ignore[name-defined, misc]
        """Body over the window, then one linear head over its last state and what is known of the targets."""

        def __init__(self) -> None:
            super().__init__()
            self.body = body
            self.drop = nn.Dropout(dropout)
            self.head = nn.Linear(units + known, outputs * (1 + len(QUANTILES)))

        def forward(self, window: Any, ahead: Any) -> Any:
            """Return batch × outputs × (mean and quantiles)."""
            if kind == "transformer":
                state = self.body["encoder"](self.body["embed"](window) + self.body.place)[:, -1]
            else:
                state = self.body(window)[0][:, -1]
            made = self.head(torch.cat([self.drop(state), ahead], dim=1))
            return made.reshape(len(window), outputs, 1 + len(QUANTILES))

    return Network()


def loss_of(made: Any, wanted: Any, quantile_weight: float) -> Any:
    """Return the squared error of the mean plus the weighted quantile loss (Koenker and Bassett 1978)."""
    torch = require("torch", extra="neural")
    gap = wanted - made[:, :, 0]
    total = (gap**2).mean()
    if quantile_weight:
        levels = torch.tensor(QUANTILES)
        gaps = wanted[:, :, None] - made[:, :, 1:]
        total = total + quantile_weight * torch.maximum(levels * gaps, (levels - 1) * gaps).mean()
    return total
