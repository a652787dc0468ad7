"""The steps of a plan after the first: sizes that are sure enough, and fewer nodes of one GPU model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from gputwin.optimization.capacity.evaluate import Evaluator, Point
from gputwin.optimization.capacity.luck import Luck, sure_size
from gputwin.optimization.capacity.scale import Counts, mix_of
from gputwin.optimization.capacity.search import Found, larger_sizes, safe_size
from gputwin.simulation.cluster import Cluster

REACH = 1.25
"""Larger sizes are tried up to this multiple of what is enough for the record, and of the answer."""


@dataclass(frozen=True)
class Search:
    """What the steps of a plan share."""

    evaluate: Evaluator
    cluster: Cluster
    confidence: float
    largest: int
    progress: Callable[[str], None]

    def sure(self, mix: Cluster, found: Found, safe: int) -> tuple[Point | None, Luck, list[int]]:
        """Return the point that meets the target with the confidence asked for, the record's luck, and the sizes from
        there on that the record itself misses the target on. `safe` is the record's size in the cluster's own mix.
        """
        evaluate = self.evaluate
        assert found.meets is not None
        curve = {p.nodes: p.value for p in evaluate.points.values() if p.counts == mix_of(self.cluster, sum(p.counts))}
        sure, luck = sure_size(
            evaluate,
            lambda nodes: mix_of(mix, nodes),
            found.meets.nodes,
            {nodes / safe: value for nodes, value in curve.items()},
            self.confidence,
            self.largest,
            self.progress,
        )
        if sure is None:
            return None, luck, []
        top = min(math.ceil(sure * REACH), self.largest)
        sizes = [sure, *larger_sizes(sure, top, evaluate.setting.workload.size)]
        self.progress(f"simulating larger sizes, up to {top:,} nodes")
        points = evaluate([mix_of(mix, nodes) for nodes in sizes])
        return points[0], luck, [p.nodes for p in points if not evaluate.setting.target.met(p.value)]

    def by_model(self, found: Found) -> tuple[Cluster, Found]:
        """Return the mix and the plan after nodes of each GPU model, the largest share first, were taken away."""
        assert found.meets is not None
        counts, misses = found.meets.counts, found.misses
        groups = self.cluster.groups
        models = list(dict.fromkeys(g.gpu_model for g in groups))
        models.sort(key=lambda m: -sum(n * g.gpus for g, n in zip(groups, counts, strict=True) if g.gpu_model == m))
        for model in models:
            own = [i for i, g in enumerate(groups) if g.gpu_model == model]
            have = sum(counts[i] for i in own)
            part = replace(self.cluster, groups=tuple(replace(groups[i], count=counts[i]) for i in own), node_ids=None)

            def with_part(nodes: int, own: list[int] = own, part: Cluster = part, base: Counts = counts) -> Counts:
                changed = list(base)
                for i, n in zip(own, mix_of(part, nodes), strict=True):
                    changed[i] = n
                return tuple(changed)

            self.progress(f"fewer {model or 'CPU'} nodes")
            first = [max(int(have * 0.8), len(own)), have]
            smaller = safe_size(self.evaluate, with_part, first, len(own), have, reach=REACH)
            if smaller.meets is not None:
                counts, misses = smaller.meets.counts, smaller.misses or misses
        mix = replace(
            self.cluster, groups=tuple(replace(g, count=n) for g, n in zip(groups, counts, strict=True)), node_ids=None
        )
        return mix, Found(self.evaluate([counts])[0], misses)
