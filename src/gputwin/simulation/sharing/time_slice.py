"""Several jobs on one GPU in turn."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import inlined
from gputwin.simulation.engine.state.records import WHOLE, Floats, Knobs, Machines, Records
from gputwin.simulation.policy import SHARINGS, SharingRule, positions

PARAMETERS = {
    "most": 4,
    "quantum_ms": 100.0,
    "least_switch_ms": 1.0,
    "most_switch_ms": 10.0,
    "swap": False,
    "swap_gb_per_s": 12.0,
}
AT = positions(PARAMETERS)
BYTES_PER_MIB = 1048576.0


@inlined
def filled_share(machines: Machines, requests: Records, knobs: Knobs, r: int, n: int) -> float:
    """Return the share of a device's memory that one instance of r fills; that of the GPU it asks for where not known."""
    memory = knobs.sharing.memory[n]
    if requests[r].held > 0 and memory > 0:
        return float(requests[r].held / memory)
    return float(requests[r].demand / WHOLE)


@inlined
def switch_seconds(knobs: Knobs, filled: float, memory: int, swaps: bool) -> float:
    """Return what it takes to go on with a job after another, s: more the more memory it fills.

    Where the jobs on a device do not fit into its memory together, it is saved and restored too.
    """
    numbers = knobs.sharing.numbers
    least, most = numbers[AT.least_switch_ms], numbers[AT.most_switch_ms]
    seconds = (least + (most - least) * min(filled, 1.0)) / 1000.0
    if swaps:
        seconds += 2.0 * filled * memory * BYTES_PER_MIB / (numbers[AT.swap_gb_per_s] * 1e9)
    return float(seconds)


@inlined
def device_rate(machines: Machines, requests: Records, knobs: Knobs, own: int, n: int, d: int) -> float:
    """Return how fast the instance in slot `own` runs on device d of node n, 1: as alone.

    Jobs have the device in turn for a quantum each, less the switches; what those that need less than their part leave
    goes to the others in equal parts.
    """
    sharing = knobs.sharing
    jobs, filled = 0, 0.0
    k = machines.nodes[n].first_slot
    while k >= 0:
        if sharing.slots[k].devices >> d & 1:
            jobs += 1
            filled += filled_share(machines, requests, knobs, sharing.slots[k].request, n)
        k = sharing.links[k].next
    if jobs <= 1:
        return 1.0
    swaps = sharing.numbers[AT.swap] != 0.0 and filled > 1.0
    switching = 0.0
    k = machines.nodes[n].first_slot
    while k >= 0:
        if sharing.slots[k].devices >> d & 1:
            own_part = filled_share(machines, requests, knobs, sharing.slots[k].request, n)
            switching += switch_seconds(knobs, own_part, sharing.memory[n], swaps)
        k = sharing.links[k].next
    turns = jobs * sharing.numbers[AT.quantum_ms] / 1000.0
    useful = turns / (turns + switching)
    level = useful / jobs
    while True:
        small, large = 0.0, 0
        k = machines.nodes[n].first_slot
        while k >= 0:
            if sharing.slots[k].devices >> d & 1:
                demand = requests[sharing.slots[k].request].demand / WHOLE
                if demand <= level:
                    small += demand
                else:
                    large += 1
            k = sharing.links[k].next
        if large == 0 or (useful - small) / large <= level:
            break
        level = (useful - small) / large
    return float(min(1.0, level * WHOLE / requests[sharing.slots[own].request].demand))


def factor(
    jobs: Records,
    shapes: Records,
    slots: Records,
    machines: Machines,
    requests: Records,
    speeds: Floats,
    knobs: Knobs,
    j: int,
) -> float:
    """Return the factor of job j: its slowest instance holds up the others."""
    slowest = 1.0
    first = jobs[j].first_slot
    for i in range(first, first + shapes[jobs[j].shape].instances):
        if requests[slots[i].request].gpu_count == 0:
            continue
        n = slots[i].node
        for d in range(machines.nodes[n].gpu_count):
            if slots[i].devices >> d & 1:
                slowest = min(slowest, device_rate(machines, requests, knobs, i, n, d))
    return slowest


SHARINGS.add(
    SharingRule(
        "time-slice",
        "at most `most` jobs take turns on a GPU, for `quantum_ms` each; a switch takes `least_switch_ms` to "
        "`most_switch_ms` by the memory the job fills, and with `swap` also its memory's way out and in where all "
        "do not fit together (without, memory must fit); a job that needs only a share of a GPU leaves the rest of"
        " its time to the others",
        factor,
        source="Xiao et al., Gandiva, OSDI'18, section 3.2 (time slicing)",
        parameters=PARAMETERS,
        at_least={
            "most": 1,
            "quantum_ms": 1e-3,
            "least_switch_ms": 0,
            "most_switch_ms": 0,
            "swap_gb_per_s": 1e-3,
        },
        divides=True,
    )
)
