"""Multi-armed bandits over configurations: each pull simulates one configuration on one window of the trace.

Scores are losses relative to the present configuration on the same window, so 1 is as good and less is better.
Sources: UCB (Auer, Cesa-Bianchi and Fischer, 2002); Thompson sampling (Thompson, 1933; Gaussian as in Agrawal and Goyal,
2013); EXP3 (Auer et al., 2002, section 3); successive halving (Jamieson and Talwalkar, 2016).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gputwin.core.errors import UserError

Floats = NDArray[np.float64]
_PRIOR_PULLS = 0.3
"""How many pulls the belief that all configurations are alike weighs."""


@dataclass
class History:
    """Scores seen so far by arm, and on which windows: the first ones in order where not said."""

    arms: int
    windows: int
    scores: list[list[float]] = field(default_factory=list)
    half_life: float | None = None
    """Windows after which what was seen counts half as much; None: all windows count alike."""
    seen: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scores = self.scores or [[] for _ in range(self.arms)]
        self.seen = self.seen or [list(range(len(s))) for s in self.scores]

    def add(self, arm: int, window: int, score: float) -> None:
        """Keep the score of an arm on a window; the same again is nothing new."""
        if window not in self.seen[arm]:
            self.seen[arm].append(window)
            self.scores[arm].append(score)

    @property
    def pulls(self) -> int:
        """Return the number of pulls."""
        return sum(map(len, self.scores))

    def open_arms(self) -> NDArray[np.int64]:
        """Return the arms that have a window left."""
        return np.array([a for a, s in enumerate(self.scores) if len(s) < self.windows], np.int64)

    def posterior(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of each arm's expected score.

        A window has its own level, which all arms share that were pulled on it: two-way means with shrinkage. The noise
        is pooled over arms. With a half-life, late windows weigh more.
        """
        filled = np.full((self.arms, self.windows), np.nan)
        for a, seen in enumerate(self.seen):
            filled[a, seen] = self.scores[a]
        known = ~np.isnan(filled)
        ages = np.arange(self.windows)[::-1]
        weights = np.ones(self.windows) if self.half_life is None else 0.5 ** (ages / self.half_life)
        counts = (known * weights).sum(axis=1)
        arm, level = np.zeros(self.arms), np.zeros(self.windows)
        grand = float(np.nanmean(filled)) if known.any() else 1.0
        for _ in range(20):
            rest = (np.where(known, filled - grand - level, 0.0) * weights).sum(axis=1)
            arm = rest / (counts + _PRIOR_PULLS)
            rest = np.where(known, filled - grand - arm[:, None], 0.0).sum(axis=0)
            level = rest / (known.sum(axis=0) + 1.0)
        left = np.where(known, filled - grand - arm[:, None] - level, 0.0)
        freedom = max(int(known.sum()) - int((counts > 0).sum()), 1)
        spread = float(np.std(arm[counts > 0])) if (counts > 0).any() else 1.0
        noise = np.sqrt((left**2).sum() / freedom) if freedom > 1 else spread
        noise = max(float(noise), 0.05 * spread, 1e-9)
        return grand + arm, noise / np.sqrt(counts + _PRIOR_PULLS)


Chooser = Callable[[History, int, np.random.Generator], int]
"""(history, pulls left, generator) -> the arm to pull next."""


def _untried(history: History) -> int | None:
    return next((a for a, s in enumerate(history.scores) if not s), None)


def ucb(history: History, left: int, rng: np.random.Generator) -> int:
    """Return the arm with the lowest lower confidence bound of its loss."""
    fresh = _untried(history)
    if fresh is not None:
        return fresh
    mean, deviation = history.posterior()
    open_arms = history.open_arms()
    value = mean - np.sqrt(2 * np.log(max(history.pulls, 2))) * 0.5 * deviation
    return int(open_arms[np.argmin(value[open_arms])])


def thompson(history: History, left: int, rng: np.random.Generator) -> int:
    """Return the arm that is best in one draw from the posterior."""
    fresh = _untried(history)
    if fresh is not None:
        return fresh
    mean, deviation = history.posterior()
    open_arms = history.open_arms()
    drawn = rng.normal(mean, deviation)
    return int(open_arms[np.argmin(drawn[open_arms])])


def halving(history: History, left: int, rng: np.random.Generator) -> int:
    """Return the next arm of successive halving: after each round the better half goes on with twice the pulls."""
    fresh = _untried(history)
    if fresh is not None:
        return fresh
    alive = list(range(history.arms))
    need = 1
    while True:
        waiting = [a for a in alive if len(history.scores[a]) < min(need, history.windows)]
        if waiting:
            return waiting[0]
        if len(alive) <= 1 or need >= history.windows:
            mean, _ = history.posterior()
            open_arms = history.open_arms()
            return int(open_arms[np.argmin(mean[open_arms])])
        means = [float(np.mean(history.scores[a][:need])) for a in alive]
        alive = [alive[i] for i in np.argsort(means, kind="stable")[: -(-len(alive) // 2)]]
        need *= 2


def random_search(history: History, left: int, rng: np.random.Generator) -> int:
    """Return an arm at random."""
    return int(rng.choice(history.open_arms()))


@dataclass
class Exp3:
    """EXP3: assumes nothing of how scores come about; losses are clipped to [0, 2]."""

    arms: int
    exploration: float = 0.15
    log_weights: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        self.log_weights = np.zeros(self.arms)

    def probabilities(self) -> Floats:
        """Return the chance of each arm."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray((1 - self.exploration) * weights / weights.sum() + self.exploration / self.arms)

    def choose(self, rng: np.random.Generator) -> int:
        """Return the arm to pull."""
        return int(rng.choice(self.arms, p=self.probabilities()))

    def update(self, arm: int, loss: float) -> None:
        """Learn the loss of the arm that was pulled."""
        gain = 1 - np.clip(loss, 0.0, 2.0) / 2
        self.log_weights[arm] += self.exploration * gain / self.probabilities()[arm] / self.arms


CHOOSERS: dict[str, Chooser] = {
    "ucb": ucb,
    "thompson": thompson,
    "halving": halving,
    "random": random_search,
}
ALGORITHMS = (*CHOOSERS, "exp3")
IN_TIME_ORDER = ("exp3",)
"""Those that go through the windows in the trace's order, so that they follow drift."""
_HALF_LIFE = 0.2
"""Share of the windows after which what was seen counts half as much, under drift."""
TRY_ALL_FIRST = ("ucb", "thompson", "halving")
"""Those that pull every arm once, on its first window, before any arm twice."""


def search(
    pull: Callable[[int, int], float],
    arms: int,
    windows: int,
    budget: int,
    *,
    algorithm: str = "thompson",
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[History, list[int]]:
    """Return the history and the arms pulled in order; `pull(arm, k)` gives the score of an arm on window k.

    An arm's windows are used in order. EXP3 is for drift: its pulls go through the windows once, each arm pulled on the
    window whose turn it is, and later windows weigh more in what is chosen.
    """
    if algorithm not in ALGORITHMS:
        raise UserError(f"unknown algorithm '{algorithm}'; known: {', '.join(ALGORITHMS)}")
    rng = np.random.default_rng(seed)
    is_drifting = algorithm in IN_TIME_ORDER
    history, order = History(arms, windows, half_life=windows * _HALF_LIFE if is_drifting else None), []
    adversarial = Exp3(arms)
    pulls = min(budget, arms * windows)
    for done in range(pulls):
        if is_drifting:
            arm, k = adversarial.choose(rng), done * windows // pulls
        else:
            arm = CHOOSERS[algorithm](history, budget - done, rng)
            k = len(history.scores[arm])
        score = pull(arm, k)
        if is_drifting:
            adversarial.update(arm, score)
        history.add(arm, k, score)
        order.append(arm)
        progress(done + 1, budget)
    return history, order


def chosen(history: History) -> int:
    """Return the arm with the lowest expected loss, among those pulled as often as any arm nearly as good."""
    mean, deviation = history.posterior()
    tried = np.array([len(s) > 0 for s in history.scores])
    value = np.where(tried, mean, np.inf)
    best = int(np.argmin(value))
    # Where two cannot be told apart the one that is better known is the safer choice.
    near = np.flatnonzero(value <= value[best] + 0.1 * deviation[best])
    return int(min(near, key=lambda a: (-len(history.scores[a]), value[a])))


def regret(order: list[int], expected: Floats) -> Floats:
    """Return the cumulative loss above always pulling the best arm, after each pull."""
    return np.asarray(np.cumsum(expected[order] - expected.min()))


def pareto(points: Floats) -> NDArray[np.bool_]:
    """Return which rows (losses) no other row beats in every column."""
    count = len(points)
    front = np.ones(count, np.bool_)
    for i in range(count):
        beats = (points <= points[i]).all(axis=1) & (points < points[i]).any(axis=1)
        front[i] = not beats.any()
    return front
