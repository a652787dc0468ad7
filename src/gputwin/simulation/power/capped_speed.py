"""How fast a job runs where nodes or racks have a power cap: a compiled rule of speed."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import inlined
from gputwin.simulation.engine.state.records import Floats, Knobs, Machines, Records
from gputwin.simulation.power.caps import IDLE, NODE_BUDGET, RACK_BUDGET, STEP_WATTS, TABLES

_FIRST = 2
"""Row of World.speeds at which those of `caps.speed_rows` begin."""
_NO_CAP = 1e11


@inlined
def _busy_in_rack(machines: Machines, n: int) -> int:
    """Return the GPUs in use on the nodes of node n's rack, which are in sequence."""
    nodes, first, busy = machines.nodes, n, 0
    while first > 0 and nodes[first - 1].rack == nodes[n].rack:
        first -= 1
    while first < nodes.size and nodes[first].rack == nodes[n].rack:
        busy += nodes[first].gpu_count - nodes[first].gpus_whole
        first += 1
    return busy


def capped_speed(
    jobs: Records,
    shapes: Records,
    slots: Records,
    machines: Machines,
    requests: Records,
    speeds: Floats,
    knobs: Knobs,
    j: int,
) -> tuple[float, float, float]:
    """Return the factors by GPU model and its power limit, spread and neighbours."""
    slowest, found = 1.0, False
    first = jobs[j].first_slot
    for i in range(first, first + shapes[jobs[j].shape].instances):
        if requests[slots[i].request].gpu_count == 0:
            continue
        n = slots[i].node
        node = machines.nodes[n]
        each = speeds[_FIRST + NODE_BUDGET, n] / (node.gpu_count - node.gpus_whole)
        if speeds[_FIRST + RACK_BUDGET, n] < _NO_CAP:
            each = min(each, speeds[_FIRST + RACK_BUDGET, n] / _busy_in_rack(machines, n))
        row = _FIRST + TABLES + node.model
        # The table's last entry is its slowdown without a cap.
        at = min((speeds[_FIRST + IDLE, n] + each) / STEP_WATTS, 400.0)
        k = min(int(at), 399)
        slower = speeds[row, k] + (at - k) * (speeds[row, k + 1] - speeds[row, k])
        own = speeds[0, node.model] / (1.0 + slower)
        if not found or own < slowest:
            slowest, found = own, True
    return slowest, 1.0, 1.0
