"""Training: time-ordered validation tail, early stopping, clipped gradients, one seed. Needs torch; imported late."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from gputwin.core.extras import require
from gputwin.forecasting.models._networks import loss_of
from gputwin.forecasting.series import Floats

_CLIP = 1.0
_LEAST_VALIDATION = 8


class Samples(NamedTuple):
    """Windows (n × lookback × inputs), what is known of the targets (n × known) and targets (n × outputs), by time."""

    window: Floats
    ahead: Floats
    wanted: Floats


class Curve(NamedTuple):
    """Loss after each epoch on the training part and the validation tail, and the epoch whose weights were kept."""

    train: list[float]
    validation: list[float]
    kept: int


class Rules(NamedTuple):
    """How to train."""

    epochs: int
    batch: int
    rate: float
    weight_decay: float
    patience: int
    """Epochs without a better validation loss after which training stops; 0 = never, and the last weights stay."""
    quantile_weight: float
    gap: int
    """Samples left out between training and validation, whose targets overlap both."""
    validation_share: float = 0.15
    seed: int = 0


def train(network: Any, samples: Samples, rules: Rules) -> Curve:
    """Train the network in place and return its learning curve.

    The validation part is the latest; samples whose targets reach into it are not trained on.
    """
    torch = require("torch", extra="neural")
    count = len(samples.wanted)
    held = max(_LEAST_VALIDATION, int(count * rules.validation_share))
    cut = max(1, count - held)
    fitted = slice(0, max(1, cut - rules.gap))
    tensors = [torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32)) for x in samples]
    learned, checked = [t[fitted] for t in tensors], [t[cut:] for t in tensors]
    optimiser = torch.optim.AdamW(network.parameters(), lr=rules.rate, weight_decay=rules.weight_decay)
    shuffle = torch.Generator().manual_seed(rules.seed)
    curve = Curve([], [], 0)
    best, kept, state = float("inf"), 0, copy.deepcopy(network.state_dict())
    for epoch in range(rules.epochs):
        network.train()
        for rows in torch.randperm(len(learned[2]), generator=shuffle).split(rules.batch):
            optimiser.zero_grad()
            loss = loss_of(network(learned[0][rows], learned[1][rows]), learned[2][rows], rules.quantile_weight)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), _CLIP)
            optimiser.step()
        curve.train.append(_evaluate(network, learned, rules))
        curve.validation.append(_evaluate(network, checked, rules))
        if curve.validation[-1] < best - 1e-9:
            best, kept = curve.validation[-1], epoch
            state = copy.deepcopy(network.state_dict())
        elif rules.patience and epoch - kept >= rules.patience:
            break
    if rules.patience:
        network.load_state_dict(state)
    else:
        kept = len(curve.train) - 1
    network.eval()
    return curve._replace(kept=kept)


def _evaluate(network: Any, tensors: list[Any], rules: Rules) -> float:
    """Return the loss with dropout off, so that training and validation are measured alike."""
    torch = require("torch", extra="neural")
    network.eval()
    total, count = 0.0, len(tensors[2])
    with torch.no_grad():
        for low in range(0, count, 4096):
            window, ahead, wanted = (t[low : low + 4096] for t in tensors)
            total += float(loss_of(network(window, ahead), wanted, rules.quantile_weight)) * len(wanted)
    return total / max(count, 1)
