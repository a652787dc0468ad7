"""MIG profiles of each GPU: compute and memory slices, where an instance may start, and its SMs.

Facts from NVIDIA's MIG user guide and from listings of `nvidia-smi mig -lgip` and `-lgipp`; start positions of Blackwell are
assumed to be those of Hopper. Placement is by memory slice. SMs are not sevenths on Hopper and later; None: not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gputwin.core.errors import UserError


@dataclass(frozen=True)
class Profile:
    """One size of instance. `starts` are the memory slices at which one may begin."""

    name: str
    compute_slices: int
    memory_slices: int
    starts: tuple[int, ...]
    most: int
    sms: int | None


@dataclass(frozen=True)
class MigGpu:
    """A GPU that can be cut."""

    name: str
    compute_slices: int
    memory_slices: int
    sms: int | None
    profiles: tuple[Profile, ...]
    needs_reset: bool = False
    """Ampere: MIG mode is switched on by a reset, with every client gone."""

    def profile(self, name: str) -> Profile:
        """Return the profile of this name."""
        for profile in self.profiles:
            if profile.name == name:
                return profile
        known = ", ".join(p.name for p in self.profiles)
        raise UserError(f"{self.name} has no MIG profile '{name}'; known: {known}")


def _seven(name: str, memory: Sequence[int], sms: Sequence[int | None], *, needs_reset: bool = False) -> MigGpu:
    """Return a GPU of seven compute and eight memory slices; `memory` is GB of 1g, double 1g (= 2g), 3g (= 4g) and 7g."""
    one, two, half, whole = memory
    slices = tuple(range(7))
    profiles = (
        Profile(f"1g.{one}gb", 1, 1, slices, 7, sms[0]),
        Profile(f"1g.{one}gb+me", 1, 1, slices, 1, sms[0]),
        Profile(f"1g.{two}gb", 1, 2, (0, 2, 4, 6), 4, sms[1]),
        Profile(f"2g.{two}gb", 2, 2, (0, 2, 4), 3, sms[2]),
        Profile(f"3g.{half}gb", 3, 4, (0, 4), 2, sms[3]),
        Profile(f"4g.{half}gb", 4, 4, (0,), 1, sms[4]),
        Profile(f"7g.{whole}gb", 7, 8, (0,), 1, sms[5]),
    )
    return MigGpu(name, 7, 8, sms[5], profiles, needs_reset)


_AMPERE = (14, 14, 28, 42, 56, 98)
_HOPPER = (16, 26, 32, 60, 64, 132)
_GPUS = (
    MigGpu(
        "A30-24GB",
        4,
        4,
        56,
        (
            Profile("1g.6gb", 1, 1, (0, 1, 2, 3), 4, 14),
            Profile("1g.6gb+me", 1, 1, (0, 1, 2, 3), 1, 14),
            Profile("2g.12gb", 2, 2, (0, 2), 2, 28),
            Profile("2g.12gb+me", 2, 2, (0, 2), 1, 28),
            Profile("4g.24gb", 4, 4, (0,), 1, 56),
        ),
        needs_reset=True,
    ),
    _seven("A100-40GB", (5, 10, 20, 40), _AMPERE, needs_reset=True),
    _seven("A100-80GB", (10, 20, 40, 80), _AMPERE, needs_reset=True),
    _seven("H100-80GB", (10, 20, 40, 80), _HOPPER),
    _seven("H100-NVL-94GB", (12, 24, 47, 94), _HOPPER),
    _seven("H100/GH200-96GB", (12, 24, 48, 96), _HOPPER),
    _seven("H200-141GB", (18, 35, 71, 141), _HOPPER),
    _seven("GH200-144GB", (18, 36, 72, 144), _HOPPER),
    _seven("B200-180GB", (23, 45, 90, 180), (18, 30, 36, None, None, None)),
    _seven("GB200-186GB", (23, 47, 93, 186), (18, 32, 38, None, None, None)),
    _seven("B300-269GB", (34, 67, 135, 269), (None,) * 6),
    MigGpu(
        "RTX-PRO-6000-96GB",
        4,
        4,
        None,
        (
            Profile("1g.24gb", 1, 1, (0, 1, 2, 3), 4, 46),
            Profile("2g.48gb", 2, 2, (0, 2), 2, None),
            Profile("4g.96gb", 4, 4, (0,), 1, None),
        ),
    ),
)
MIG_GPUS: dict[str, MigGpu] = {gpu.name: gpu for gpu in _GPUS}


def mig_gpu(name: str) -> MigGpu:
    """Return the GPU of this name; a start of a name is enough where only one has it."""
    near = [gpu for gpu in _GPUS if gpu.name.lower() == name.lower()]
    near = near or [gpu for gpu in _GPUS if gpu.name.lower().startswith(name.lower())]
    if len(near) != 1:
        which = f"'{name}' could be several MIG GPUs" if near else f"no MIG GPU '{name}'"
        raise UserError(f"{which}; known: {', '.join(MIG_GPUS)}")
    return near[0]
