"""What GPU models and servers draw, W, and how a power limit slows them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gputwin.core.errors import UserError

_ASSUMED = "assumed"


@dataclass(frozen=True)
class GpuPower:
    """One GPU's draw: bare idle, with a process's context loaded, under load without a limit, and its limit as sold.

    `under_limit` are measured points (limit W, slowdown, mean draw W): medians over workloads of the time per epoch under
    a limit, against that without, minus 1.
    """

    model: str
    idle_watts: float
    context_watts: float
    load_watts: float
    limit_watts: float
    source: str
    under_limit: tuple[tuple[float, float, float], ...] = ()

    @property
    def is_assumed(self) -> bool:
        """Return whether nobody measured it."""
        return self.source.startswith(_ASSUMED)

    @property
    def least_limit(self) -> float:
        """Return the lowest limit that slowdowns are known for, W."""
        return self.under_limit[0][0] if self.under_limit else 1.2 * self.context_watts

    def slowdown(self, limit: float) -> float:
        """Return how much longer work takes under a power limit, as a share: 0.1 is 10 % longer.

        Between measured limits it is interpolated. Without measurements it is a cube-root law: power above idle grows
        with the cube of the clock.
        """
        self._check(limit)
        if self.under_limit:
            limits, slower, _ = zip(*self.under_limit, strict=True)
            return float(np.interp(limit, limits, slower))
        if limit >= self.load_watts:
            return 0.0
        return float(np.cbrt((self.load_watts - self.idle_watts) / (limit - self.idle_watts))) - 1.0

    def draw(self, limit: float | None = None) -> float:
        """Return the mean draw of a busy GPU under a limit, W."""
        if limit is None:
            return self.load_watts
        self._check(limit)
        if self.under_limit:
            limits, _, watts = zip(*self.under_limit, strict=True)
            return float(np.interp(limit, limits, watts))
        return min(limit, self.load_watts)

    def _check(self, limit: float) -> None:
        if not self.least_limit <= limit:
            raise UserError(f"power limit of {self.model} is {limit:g} W; give at least {self.least_limit:g}")


_ZEUS = "You et al., Zeus, NSDI'23: published power traces, medians over workloads; idle and context are estimates"
_RULE = "idle and context by the rule that a context adds 26 to 50 W to bare idle"
GPUS = {
    gpu.model: gpu
    for gpu in (
        GpuPower(
            "V100",
            30.0,
            56.0,
            177.0,
            250.0,
            _ZEUS,
            (
                (100, 0.380, 93.5),
                (125, 0.173, 109.6),
                (150, 0.112, 125.3),
                (175, 0.063, 140.0),
                (200, 0.037, 156.2),
                (225, 0.013, 166.0),
                (250, 0.0, 177.0),
            ),
        ),
        GpuPower(
            "A40",
            30.0,
            80.0,
            203.0,
            300.0,
            _ZEUS,
            (
                (100, 1.824, 102.2),
                (125, 0.965, 117.5),
                (150, 0.332, 137.5),
                (175, 0.076, 146.7),
                (200, 0.046, 172.5),
                (225, 0.016, 173.0),
                (250, 0.011, 190.5),
                (275, 0.005, 192.0),
                (300, 0.0, 203.0),
            ),
        ),
        GpuPower(
            "P100",
            25.0,
            34.0,
            120.0,
            250.0,
            _ZEUS,
            (
                (125, 0.060, 99.7),
                (150, 0.036, 102.1),
                (175, 0.017, 106.9),
                (200, 0.005, 110.7),
                (225, 0.001, 118.0),
                (250, 0.0, 120.3),
            ),
        ),
        GpuPower(
            "RTX6000",
            20.0,
            55.0,
            192.0,
            260.0,
            _ZEUS,
            (
                (100, 0.824, 93.1),
                (125, 0.219, 116.2),
                (150, 0.100, 134.7),
                (175, 0.051, 150.1),
                (200, 0.030, 166.7),
                (225, 0.018, 182.3),
                (250, 0.007, 188.5),
                (260, 0.0, 192.0),
            ),
        ),
        GpuPower("T4", 10.0, 26.0, 60.0, 70.0, "assumed: 85 % of its limit as sold under load"),
        GpuPower("A100", 64.0, 96.0, 385.0, 400.0, "Hu et al., Acme, NSDI'24: distribution of GPU power"),
        GpuPower("H100", 70.0, 110.0, 532.0, 700.0, f"ML.ENERGY leaderboard, 2026-02: load; {_RULE}"),
        GpuPower("H200", 80.0, 120.0, 593.0, 700.0, f"vendor benchmark page: idle and load; {_RULE}"),
        GpuPower("B200", 100.0, 140.0, 726.0, 1000.0, f"ML.ENERGY leaderboard, 2026-02: load; {_RULE}"),
    )
}
UNKNOWN = GpuPower("unknown", 30.0, 60.0, 180.0, 250.0, "assumed: like a V100")
SERVER_WATTS = 540.0
"""Draw of a server without GPUs (Acme: CPU servers, median 546 W)."""
SERVER_WATTS_PER_GPU = 58.0
"""More for each GPU it can hold (fans, power supplies): a server of 8 idle A100 draws 1,516 W; measured: 1,512 at the 5th
percentile."""


def gpu_power(model: str | None) -> GpuPower:
    """Return the draw of a GPU model by name, as 'V100' or 'A100-SXM4-80GB'; one that is not known counts as a V100."""
    name = (model or "").upper().replace(" ", "").replace("-", "")
    found = [gpu for key, gpu in GPUS.items() if key in name]
    return found[0] if found else UNKNOWN


def speeds_under_limits(limits: dict[str, float]) -> dict[str, float]:
    """Return the work a second of each GPU model under its power limit, 1 without limit: what `speed.by_model` takes."""
    return {model: 1.0 / (1.0 + gpu_power(model).slowdown(limit)) for model, limit in limits.items()}
