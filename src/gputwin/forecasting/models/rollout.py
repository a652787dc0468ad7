"""The roll-out aware model: demand in force moves because applications replace, add or drop replicas.

A roll-out starts new replicas before it stops the old, so that an application stands above its usual count and then
falls back. One LightGBM model per lead and series learns the change of a group's replica count from the group's own
recent arrivals, departures and ages; the change of demand is the sum over groups of that change times what one replica
asks for. Groups where nothing happened lately are taken to stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gputwin.forecasting.calendar import calendar
from gputwin.forecasting.models._boosters import FEW_BINS, REPRODUCIBLE, BoosterModel
from gputwin.forecasting.models._model import MODELS, Spec, floor_of, interpolated
from gputwin.forecasting.series import DemandSeries, Floats, Integers, Replicas

_WINDOWS_SECONDS = (0.0, 900.0, 1800.0, 3600.0, 10_800.0, 43_200.0, 86_400.0)
_USUAL_SECONDS = (10_800.0, 86_400.0)
_CHUNK = 200_000


class Rollout(BoosterModel):
    """Replica counts per application. Rows are the groups with any event in the last half day, at most `rows`."""

    shortest = 200

    def __init__(
        self, rounds: int = 130, rate: float = 0.05, leaves: int = 15, rows: int = 150_000, seed: int = 0
    ) -> None:
        self.rounds = rounds
        self.rate = rate
        self.leaves = leaves
        self.rows = rows
        self.seed = seed

    def _learn(self, series: DemandSeries, leads: Sequence[int]) -> None:
        import lightgbm

        table = ReplicaTable(series)
        self.boosters_ = {}
        self.floor_ = floor_of(series)
        for lead in leads:
            at, group = table.active(np.arange(len(series) // 20, len(series) - lead + 1, dtype=np.int64))
            # Every n-th row, so that all of the history has its share.
            step = max(1, -(-len(at) // self.rows))
            at, group = at[::step], group[::step]
            if len(at) < self.shortest:
                continue
            alive = table.replicas.alive
            change = alive[at + lead - 1, group] - alive[at - 1, group]
            for kind, weight in table.weights():
                chosen = weight[group] > 0
                if chosen.sum() < self.shortest or not change[chosen].any():
                    continue
                matrix = table.features(at[chosen], group[chosen])
                share = weight[group[chosen]]
                data = lightgbm.Dataset(matrix, change[chosen], weight=share / share.mean(), params={**FEW_BINS})
                self.boosters_[f"{lead}/{kind}"] = lightgbm.train(self._settings(), data, self.rounds)

    def _settings(self) -> dict[str, Any]:
        return {
            # Most changes are none, some are whole fleets: squared error would learn the fleets by heart.
            "objective": "huber",
            "alpha": 2.0,
            "learning_rate": self.rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": 100,
            "lambda_l2": 10.0,
            "feature_fraction": 0.5,
            "bagging_fraction": 0.5,
            "bagging_freq": 1,
            "seed": self.seed,
            **FEW_BINS,
            **REPRODUCIBLE,
        }

    def predict_at(self, series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
        """Return the last value plus the change expected of every group that moved lately."""
        table = ReplicaTable(series)
        last = series.values[origins - 1]
        result = np.repeat(last[:, None, :], len(self.leads_), axis=1)
        at, group = table.active(origins)
        row = np.searchsorted(origins, at)
        kinds = [kind for kind, _ in table.weights()]
        for low in range(0, len(at), _CHUNK):
            part = slice(low, low + _CHUNK)
            matrix = table.features(at[part], group[part])
            for i, lead in enumerate(self.leads_):
                for kind in kinds:
                    booster = self.boosters_.get(f"{lead}/{kind}")
                    if booster is None:
                        continue
                    change = booster.predict(matrix)
                    for j in table.served_by(kind):
                        moved = change * table.replicas.requests[group[part], j]
                        result[:, i, j] += np.bincount(row[part], moved, minlength=len(origins))
        return np.maximum(interpolated(result, self.leads_, leads), self.floor_)


class ReplicaTable:
    """What is known of every group before each origin; row `o-1` of an array belongs to origin `o`."""

    def __init__(self, series: DemandSeries) -> None:
        if series.replicas is None:
            raise ValueError("the series has no replica counts")
        self.series = series
        self.replicas: Replicas = series.replicas
        self._columns = self._history()
        self._clock = calendar(series, 0, len(series) + 1)

    def active(self, origins: Integers) -> tuple[Integers, Integers]:
        """Return origin and group of every pair with an arrival or departure in the half day before the origin."""
        origins = origins[origins >= 1]
        at, group = np.nonzero(self._moved[origins - 1])
        return origins[at], group

    def weights(self) -> list[tuple[str, Floats]]:
        """Return the models to learn: (name, weight of each group), one for all resources that share their groups.

        A group weighs as much as the square of what one replica asks for, so that the sum's squared error counts.
        """
        requests = self.replicas.requests
        made: dict[bytes, tuple[str, Floats]] = {}
        for j, name in enumerate(self.series.names):
            key = (requests[:, j] > 0).tobytes()
            if key not in made:
                made[key] = (name, requests[:, j] ** 2)
        return list(made.values())

    def served_by(self, kind: str) -> list[int]:
        """Return the columns of the series whose groups are those of the model `kind`."""
        requests = self.replicas.requests > 0
        own = requests[:, self.series.names.index(kind)]
        return [j for j in range(requests.shape[1]) if np.array_equal(requests[:, j], own)]

    def features(self, at: Integers, group: Integers) -> Floats:
        """Return rows × features, as single floats."""
        own = [column[at - 1, group] for column in self._columns]
        whole = [total[at - 1] for total in self._totals]
        app = self.replicas.application[group]
        beside = [column[at - 1, app] for column in self._applications]
        kind = [self.replicas.requests[group, j] for j in range(self.replicas.requests.shape[1])]
        clock = [self._clock.day_share[at], self._clock.weekday[at].astype(np.float64)]
        return np.stack([*own, *whole, *beside, *kind, *clock], axis=1).astype(np.float32)

    def _history(self) -> list[Floats]:
        from scipy.ndimage import maximum_filter1d, median_filter, minimum_filter1d

        width = self.series.bin_seconds
        windows = sorted({max(1, round(w / width)) for w in _WINDOWS_SECONDS})
        groups = self.replicas
        came = {w: _windowed(groups.arrived, w) for w in windows}
        went = {w: _windowed(groups.departed, w) for w in windows}
        usual = sorted({max(3, 2 * round(w / width / 2) + 1) for w in _USUAL_SECONDS})
        columns = [groups.alive, *came.values(), *went.values(), *groups.young.values()]
        for window in usual:
            # The filter is centred; shifted by half its window it sees only what has been.
            middle = median_filter(groups.alive, size=(window, 1), origin=(window // 2, 0), mode="nearest")
            columns.append(groups.alive - middle)
        longest = usual[-1]
        for extreme in (maximum_filter1d, minimum_filter1d):
            edge = extreme(groups.alive, size=longest, axis=0, origin=longest // 2, mode="nearest")
            columns.append(groups.alive - edge)
        self._moved = (came[windows[-2]] + went[windows[-2]]) > 0
        few = windows[1:5]
        self._totals = [side[w].sum(axis=1) for w in few for side in (came, went)]
        count = int(groups.application.max()) + 1
        member = np.zeros((groups.alive.shape[1], count))
        member[np.arange(len(member)), groups.application] = 1.0
        self._applications = [side[w] @ member for w in few[:3] for side in (came, went)]
        return columns


def _windowed(counts: Floats, window: int) -> Floats:
    """Return the sum of the last `window` rows up to and with each row."""
    sums = np.cumsum(counts, axis=0)
    result = sums.copy()
    result[window:] -= sums[:-window] if window < len(sums) else 0
    return result


MODELS.add(
    Spec(
        "rollout",
        Rollout,
        "replica counts of every application, LightGBM on roll-outs under way",
        10,
        costly=1,
        suits=lambda s: s.replicas is not None,
    )
)
