"""How much of a plan is the record's luck, and the size that is enough with a stated confidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from gputwin.optimization.capacity.blocks import block_count, draws_of
from gputwin.optimization.capacity.evaluate import Evaluator
from gputwin.optimization.capacity.scale import Counts
from gputwin.optimization.capacity.target import Floats

_RECORDS_FOR_JOBS, _FEWEST_RECORDS, _MOST_RECORDS = 1_600_000, 16, 30
_STEPS = (1.05, 1.05, 1.1, 1.2, 1.4)
"""Where the estimate is too small, sizes grow by these factors."""
_MOST_RATIO = 2.0
"""A drawn record is not taken to need more than so many times the record's size, nor less than one part of so many."""


@dataclass(frozen=True)
class Luck:
    """What records like this one, its days drawn with replacement, would have asked for."""

    confidence: float
    low: int
    high: int
    """Nodes; the 90 % interval of the size a record needs."""
    records: int
    """Drawn records simulated whole, on the record's own safe size and on the answer."""
    records_met: int
    """Of those, on the answer."""
    blocks: int
    block_seconds: float


def records_for(jobs: int) -> int:
    """Return how many drawn records are simulated: fewer where a simulation takes longer."""
    return min(max(_RECORDS_FOR_JOBS // max(jobs, 1), _FEWEST_RECORDS), _MOST_RECORDS)


def sure_size(
    evaluate: Evaluator,
    counts_of: Callable[[int], Counts],
    safe: int,
    curve: Mapping[float, float],
    confidence: float,
    largest: int,
    progress: Callable[[str], None],
) -> tuple[int | None, Luck]:
    """Return the size that meets the target with this confidence, None where none tried does, and the record's luck.

    Drawn records are simulated whole on the record's own safe size. Where one waits as the record does on n nodes, it
    is taken to need safe²/n. The size wanted is the quantile of these over records; the drawn records are then simulated
    on it, and it grows until as large a share of them meets the target. `curve` has the record's figure, s, for sizes
    relative to the safe one.
    """
    setting = evaluate.setting
    submit = setting.workload.jobs["submit"]
    blocks = block_count(submit)
    draws = draws_of(submit)[: records_for(setting.workload.size)]
    progress(f"simulating {len(draws)} records of drawn days on {safe:,} nodes")
    needs = [_ratio(value, curve) for value in evaluate.records(counts_of(safe), draws)]
    spread = _Spread.of(np.log(needs), blocks)
    sure, met = None, 0
    for size in _candidates(safe, spread, confidence, largest):
        progress(f"simulating {len(draws)} records of drawn days on {size:,} nodes")
        met = sum(setting.target.met(value) for value in evaluate.records(counts_of(size), draws))
        if met >= confidence * len(draws) - 1e-9:
            sure = size
            break
    low, high = safe * spread.factor(0.05), safe * spread.factor(0.95)
    if sure is not None:
        # More than the estimate may have been needed.
        high = max(high, sure * spread.factor(0.95) / spread.factor(confidence))
    luck = Luck(
        confidence,
        max(math.floor(min(low, safe)), 1),
        max(math.ceil(high - 1e-9), safe),
        len(draws),
        met,
        blocks,
        float(submit[-1] - submit[0]) / blocks,
    )
    return sure, luck


@dataclass(frozen=True)
class _Spread:
    """The logarithms of what drawn records need relative to the record: their mean, spread and degrees of freedom."""

    mean: float
    scale: float
    freedom: int

    @classmethod
    def of(cls, logs: Floats, blocks: int) -> _Spread:
        # Few blocks, drawn with replacement, show too little of the spread between records.
        scale = float(np.std(logs, ddof=1)) * math.sqrt((1 + 1 / logs.size) * blocks / (blocks - 1))
        return cls(float(logs.mean()), scale, min(logs.size, blocks) - 1)

    def factor(self, share: float) -> float:
        """Return the multiple of the record's size that this share of records needs at most (Student's t)."""
        return math.exp(self.mean + self.scale * float(t.ppf(share, self.freedom)))


def _ratio(value: float, curve: Mapping[float, float]) -> float:
    """Return what a record needs relative to the simulated one, which has this figure on its safe size.

    The curve of figures over sizes is read from the right, each size with the worst figure of all larger ones; between
    sizes and beyond the smallest it is a line over logarithms.
    """
    sizes = np.array(sorted(curve))
    worst = np.maximum.accumulate(np.array([curve[n] for n in sizes])[::-1])[::-1]
    known = np.isfinite(worst)
    sizes, heights = np.log(sizes[known]), np.log1p(worst[known])
    if not math.isfinite(value) or sizes.size < 2:
        return _MOST_RATIO if value > 0 else 1.0
    height = math.log1p(value)
    if height > heights[0]:
        slope = max((heights[0] - heights[-1]) / (sizes[-1] - sizes[0]), 1.0)
        same = sizes[0] - (height - heights[0]) / slope
    else:
        # From the right: the least size whose figure, and that of all larger ones, is no worse.
        same = float(np.interp(height, heights[::-1], sizes[::-1]))
    return float(np.clip(math.exp(-same), 1 / _MOST_RATIO, _MOST_RATIO))


def _candidates(safe: int, spread: _Spread, confidence: float, largest: int) -> Iterator[int]:
    """Yield sizes to try, each larger than the one before."""
    size = 0
    for share in (confidence, (1 + confidence) / 2, (3 + confidence) / 4):
        wanted = min(max(math.ceil(safe * min(spread.factor(share), _MOST_RATIO) - 1e-9), safe), largest)
        if wanted > size:
            size = wanted
            yield size
    for factor in _STEPS:
        if size < largest:
            size = min(max(math.ceil(size * factor), size + 1), largest)
            yield size
