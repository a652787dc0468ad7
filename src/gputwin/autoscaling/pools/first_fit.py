"""First fit in compiled code: instances into rooms, onto new nodes of one type, and onto new nodes of any type.

All amounts are whole numbers, one column per resource. `needs` has a row per task, `able` says which types it accepts.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@njit(cache=True)
def most_that_fit(needs: Ints, free: Ints, most: int) -> int:
    """Return how many times `needs` fit into `free`, at most `most`."""
    for r in range(needs.size):
        if needs[r] > 0:
            most = min(most, free[r] // needs[r])
    return max(most, 0)


@njit(cache=True)
def fill(needs: Ints, instances: Ints, able: Bools, types: Ints, free: Ints, partly: bool) -> Ints:
    """Return how many instances of each task found no room; rooms are filled in place, the first with room first.

    A task takes room only if all its instances fit; `partly`: it takes what there is.
    """
    tasks, rooms = needs.shape[0], free.shape[0]
    lacking = instances.copy()
    counts = np.zeros(rooms, np.int64)
    refused = np.zeros(tasks, np.int64)
    refused_from = np.zeros(tasks, np.int64)
    refusals = 0
    for i in range(tasks):
        # Room only shrinks: what did not fit once does not fit later.
        is_hopeless = False
        for k in range(refusals):
            j = refused[k]
            if instances[i] < refused_from[k]:
                continue
            asks_no_less = True
            for r in range(needs.shape[1]):
                if needs[i, r] != needs[j, r]:
                    asks_no_less = False
                    break
            if asks_no_less and (able[i] == able[j]).all():
                is_hopeless = True
                break
        if is_hopeless:
            continue
        rest, last = instances[i], -1
        for n in range(rooms):
            if rest == 0:
                break
            counts[n] = most_that_fit(needs[i], free[n], rest) if able[i, types[n]] else 0
            rest -= counts[n]
            last = n
        if rest > 0:
            refused[refusals], refused_from[refusals] = i, 1 if partly else instances[i]
            refusals += 1
            if not partly:
                continue
        lacking[i] = rest
        for n in range(last + 1):
            if counts[n] > 0:
                free[n] -= counts[n] * needs[i]
    return lacking


@njit(cache=True)
def pack(order: Ints, needs: Ints, instances: Ints, able: Bools, capacity: Ints, most: int) -> tuple[Bools, Ints]:
    """Return which tasks new nodes of one capacity take, at most `most` nodes, and what is left free on each node."""
    free = np.empty((max(most, 0), capacity.size), np.int64)
    counts = np.zeros(max(most, 0), np.int64)
    placed = np.zeros(needs.shape[0], np.bool_)
    nodes = 0
    for i in order:
        each = most_that_fit(needs[i], capacity, instances[i]) if able[i] else 0
        if each == 0:
            continue
        rest = instances[i]
        for n in range(nodes):
            counts[n] = most_that_fit(needs[i], free[n], rest)
            rest -= counts[n]
        new = -(-rest // each)
        if nodes + new > most:
            continue
        for n in range(nodes, nodes + new):
            free[n] = capacity
            counts[n] = min(each, rest)
            rest -= counts[n]
        nodes += new
        for n in range(nodes):
            if counts[n] > 0:
                free[n] -= counts[n] * needs[i]
        placed[i] = True
    return placed, free[:nodes]


@njit(cache=True)
def claim(order: Ints, needs: Ints, instances: Ints, able: Bools, capacities: Ints) -> tuple[Ints, Ints, Bools]:
    """Return for each instance, in order, its task and the new node it goes to, and which types fit each new node.

    A new node takes instances while one type fits them all. `able`: types that fit one instance of the task alone.
    """
    total = 0
    for i in order:
        total += instances[i] if able[i].any() else 0
    task_of, node_of = np.empty(total, np.int64), np.empty(total, np.int64)
    held = np.zeros((total, needs.shape[1]), np.int64)
    fitting = np.zeros((total, able.shape[1]), np.bool_)
    still = np.zeros(able.shape[1], np.bool_)
    nodes, done = 0, 0
    for i in order:
        if not able[i].any():
            continue
        c = 0
        for _ in range(instances[i]):
            # A node that had no room for one instance has none for the next.
            while c < nodes:
                for k in range(still.size):
                    still[k] = fitting[c, k] and able[i, k]
                    for r in range(needs.shape[1]):
                        more = held[c, r] + needs[i, r]
                        if still[k] and more > 0 and more > capacities[k, r]:
                            still[k] = False
                if still.any():
                    break
                c += 1
            if c == nodes:
                nodes += 1
                still[:] = able[i]
            fitting[c] = still
            held[c] += needs[i]
            task_of[done], node_of[done] = i, c
            done += 1
    return task_of, node_of, fitting[:nodes]
