"""Published failure rates as mean times between failures of a node with eight GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from gputwin.core.errors import UserError
from gputwin.core.units import DAY


@dataclass(frozen=True)
class Preset:
    """How often a node failed somewhere, and who says so."""

    name: str
    per_1000_node_days: float
    source: str

    @property
    def mtbf_seconds(self) -> float:
        """Return the mean time between failures of a node, s."""
        return 1000.0 * DAY / self.per_1000_node_days


PRESETS = {
    p.name: p
    for p in (
        Preset(
            "llama3",
            # 419 unexpected interruptions of 16,384 GPUs, eight on a node, in 54 days.
            419 / (16_384 / 8 * 54) * 1000,
            "Meta, The Llama 3 Herd of Models, 2024, section 3.3.4: 419 unexpected interruptions, 16,384 H100, 54 days",
        ),
        Preset("rsc1", 6.5, "Kokolis et al., Revisiting Reliability, HPCA'25: RSC-1, 16,000 A100, 11 months"),
        Preset("rsc2", 2.34, "Kokolis et al., Revisiting Reliability, HPCA'25: RSC-2, 8,000 A100, 11 months"),
    )
}


def preset_named(name: str) -> Preset:
    """Return the preset; an unknown one is a user error."""
    if name not in PRESETS:
        raise UserError(f"unknown preset of failures '{name}'; known: {', '.join(PRESETS)}")
    return PRESETS[name]
