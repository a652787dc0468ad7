"""Legal layouts of one GPU: which instances may stand where, by trying all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache

from gputwin.simulation.mig_profiles import MigGpu, Profile

Slot = tuple[str, int]
"""(profile, memory slice at which it starts)."""
Layout = tuple[Slot, ...]
"""Slots in order of start."""
Mix = tuple[tuple[str, int], ...]
"""(profile, instances) in order of name."""


def mix_of(layout: Iterable[Slot]) -> Mix:
    """Return how many instances of each profile the layout has."""
    return tuple(sorted(Counter(name for name, _ in layout).items()))


def is_legal(gpu: MigGpu, layout: Iterable[Slot]) -> bool:
    """Return whether the slots may stand together on the GPU."""
    taken: set[int] = set()
    compute = 0
    for name, start in layout:
        profile = gpu.profile(name)
        cells = set(range(start, start + profile.memory_slices))
        if start not in profile.starts or taken & cells or max(cells) >= gpu.memory_slices:
            return False
        taken |= cells
        compute += profile.compute_slices
    if compute > gpu.compute_slices:
        return False
    counts = Counter(name for name, _ in layout)
    if any(counts[p.name] > p.most for p in gpu.profiles):
        return False
    # Only one instance of a GPU has the media engines.
    return sum(n for name, n in counts.items() if name.endswith("+me")) <= 1


@cache
def layouts(gpu: MigGpu, names: tuple[str, ...] | None = None) -> tuple[Layout, ...]:
    """Return every legal layout of these profiles (all where not given), the empty one included."""
    profiles = [p for p in gpu.profiles if names is None or p.name in names]
    found: list[Layout] = []

    def extend(layout: Layout, first: int) -> None:
        found.append(layout)
        for slot in _slots(profiles, first):
            grown = (*layout, slot)
            if is_legal(gpu, grown):
                extend(grown, slot[1] + gpu.profile(slot[0]).memory_slices)

    extend((), 0)
    return tuple(found)


def _slots(profiles: Iterable[Profile], first: int) -> list[Slot]:
    return [(p.name, start) for p in profiles for start in p.starts if start >= first]


@cache
def maximal_layouts(gpu: MigGpu, names: tuple[str, ...] | None = None) -> tuple[Layout, ...]:
    """Return the layouts to which no further instance can be added."""
    known = {frozenset(layout) for layout in layouts(gpu, names)}
    slots = _slots([p for p in gpu.profiles if names is None or p.name in names], 0)
    return tuple(
        layout
        for layout in layouts(gpu, names)
        if not any(frozenset((*layout, s)) in known for s in slots if s not in layout)
    )


@cache
def maximal_mixes(gpu: MigGpu, names: tuple[str, ...] | None = None) -> tuple[Mix, ...]:
    """Return the mixes of instances that are part of no larger one."""
    mixes = sorted({mix_of(layout) for layout in layouts(gpu, names)})
    counts = [Counter(dict(m)) for m in mixes]
    return tuple(m for m, c in zip(mixes, counts, strict=True) if not any(c < other for other in counts))
