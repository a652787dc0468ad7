"""place(): the best packing within a time budget, with a bound that no packing can be below."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from time import process_time

import numpy as np

from gputwin.core.errors import UserError
from gputwin.optimization.placement.bounds import simple_bound
from gputwin.optimization.placement.columns import Generated, generate, residual, round_up
from gputwin.optimization.placement.diving import dive
from gputwin.optimization.placement.enumeration import columns_within
from gputwin.optimization.placement.exact import solve_exactly
from gputwin.optimization.placement.heuristics import SCORES, Nodes, decreasing, fill
from gputwin.optimization.placement.infeasible import explain_infeasible
from gputwin.optimization.placement.local import improve
from gputwin.optimization.placement.master import Column, solve_whole
from gputwin.optimization.placement.merging import fits_on
from gputwin.optimization.placement.parts import independent_parts, joined, part_of, with_fixed
from gputwin.optimization.placement.pricing import Knapsack
from gputwin.optimization.placement.problem import Attempt, Packing, PlacementResult, Problem
from gputwin.optimization.placement.reduction import exact_pairs, is_by_size

METHODS = ("auto", "heuristics", "columns", "exact")
DEFAULT_SECONDS = 60.0
_SMALL = 60
"""Instances up to which CP-SAT is asked for the optimum itself."""
_MOST_COLUMNS = 60_000
_INTEGER_SECONDS = 5.0
_MOST_RAISES = 100
_STEPS, _STEPS_PER_SECOND = 60_000, 15_000
"""Steps of the search for patterns at first, and later, when nothing else has helped, per second that is left."""
_GRACE_SECONDS = 1.5
"""How much longer than its budget the search for a first packing may take."""
_ANY_OBJECTIVE = 1 << 60
_TIGHT = 0.1
"""Distance of the linear bound from the next whole objective, within which patterns are listed before diving."""


class _Search:
    """The best packing and bound so far, and the record of who found them."""

    def __init__(self, problem: Problem, deadline: float) -> None:
        self.problem, self.deadline = problem, deadline
        self.packing: Packing | None = None
        self.bound = 0
        self.attempts: list[Attempt] = []
        self.is_impossible = False

    @property
    def is_done(self) -> bool:
        return self.packing is not None and self.packing.objective(self.problem) <= self.bound

    @property
    def left(self) -> float:
        return max(self.deadline - process_time(), 0.0)

    def note(self, method: str, began: float, packing: Packing | None, bound: int | None = None) -> None:
        """Keep what a method found where it is better."""
        complete = packing is not None and packing.is_complete(self.problem)
        value = packing.objective(self.problem) if packing is not None and complete else None
        self.attempts.append(Attempt(method, value, bound, process_time() - began))
        if bound is not None:
            self.bound = max(self.bound, bound)
        if value is not None and (self.packing is None or value < self.packing.objective(self.problem)):
            self.packing = packing


def place(
    problem: Problem,
    *,
    method: str = "auto",
    seconds: float = DEFAULT_SECONDS,
    warm: Packing | None = None,
    seed: int = 0,
    explain: bool = True,
    progress: Callable[[str], None] = lambda step: None,
) -> PlacementResult:
    """Return the best packing found within so many seconds, a lower bound, and what each method found.

    `warm` is a packing to start from, such as the present one. Parts of the problem that share no node type are solved
    one by one, the time divided by their number. With `explain`, what has no placement is told why.
    """
    if method not in METHODS:
        raise UserError(f"unknown method '{method}'; known: {', '.join(METHODS)}")
    if not math.isfinite(seconds) or seconds <= 0:
        raise UserError(f"a time budget of {seconds:g} s is none; give a positive one")
    parts = independent_parts(problem)
    results = []
    end = process_time() + seconds
    for i, (part, groups, types) in enumerate(parts):
        share = (end - process_time()) / (len(parts) - i)
        own = None if warm is None else part_of(problem, warm, groups, types)
        fixed = exact_pairs(part) if method in ("auto", "columns") and own is None else []
        rest = residual(part, fixed) if fixed else part
        result = _solve(rest, method, share, own, seed, explain, progress)
        results.append(with_fixed(part, fixed, result) if fixed else result)
    return joined(problem, parts, results)


def _solve(
    problem: Problem,
    method: str,
    seconds: float,
    warm: Packing | None,
    seed: int,
    explain: bool,
    progress: Callable[[str], None],
) -> PlacementResult:
    began = process_time()
    search = _Search(problem, process_time() + seconds)
    reasons = explain_infeasible(problem)
    if reasons:
        return PlacementResult(problem, None, 0, (), reasons)
    search.note("total capacity", began, None, simple_bound(problem))
    if warm is not None:
        search.note("start given", process_time(), warm)
    if method != "exact":
        for rule in SCORES:
            # A first packing may take a little longer than the budget: without one there is no answer at all.
            grace = _GRACE_SECONDS if search.packing is None else 0.0
            if process_time() > search.deadline + grace:
                break
            progress(f"{rule} decreasing")
            began = process_time()
            search.note(f"{rule} decreasing", began, decreasing(problem, rule, deadline=search.deadline + grace))
    if method in ("auto", "columns") and not search.is_done and search.left > 0:
        _by_columns(search, seed, progress)
        if search.is_impossible:
            return PlacementResult(problem, None, 0, tuple(search.attempts), _no_packing(problem, explain))
    small = int(problem.counts.sum()) <= _SMALL
    if not search.is_done and (method == "exact" or (method == "auto" and small)):
        progress("CP-SAT")
        began = process_time()
        packing, bound, impossible = solve_exactly(problem, search.left, start=search.packing, seed=seed)
        search.note("CP-SAT", began, packing, bound)
        if impossible:
            return PlacementResult(problem, None, 0, tuple(search.attempts), _no_packing(problem, explain))
    if method in ("auto", "columns", "heuristics") and search.packing is not None and not search.is_done:
        progress("local search")
        began = process_time()
        search.note("local search", began, improve(problem, search.packing, deadline=search.deadline, seed=seed))
    reasons = ()
    if search.packing is None:
        reasons = _no_packing(problem, explain) if _is_impossible(problem, search.bound) else ()
    return PlacementResult(problem, search.packing, search.bound, tuple(search.attempts), reasons)


def _by_columns(search: _Search, seed: int, progress: Callable[[str], None]) -> None:
    problem = search.problem
    progress("column generation")
    began = process_time()
    start: list[Column] = [] if search.packing is None else [(u.node_type, u.pattern) for u in search.packing.uses]
    generated = generate(problem, start, deadline=process_time() + search.left * 0.6, seed=seed)
    search.note("column generation (bound)", began, None, generated.bound)
    if search.is_done or _is_impossible(problem, search.bound):
        return
    is_tight = generated.bound - generated.proof.bound < _TIGHT
    if is_tight:
        # Few patterns can be part of a packing at the bound, so that listing them is quick.
        _by_enumeration(search, generated, progress)
    columns = generated.columns
    if not search.is_done and not problem.rack_limits:
        progress("diving")
        began = process_time()
        packing, columns = dive(problem, generated, deadline=process_time() + search.left * 0.5, seed=seed)
        search.note("diving", began, packing)
    is_wide = any(Knapsack(problem, t).is_wide for t in range(len(problem.types)))
    if not search.is_done and is_wide and not problem.rack_limits:
        began = process_time()
        deadline = process_time() + search.left * 0.5
        packing, _ = dive(problem, generated, deadline=deadline, thorough=True, seed=seed)
        search.note("diving, exact tables", began, packing)
    if not search.is_done and is_by_size(problem):
        _by_merging(search, generated, progress)
    if not search.is_done and not is_tight:
        _by_enumeration(search, generated, progress)
    if not search.is_done and not search.is_impossible:
        progress("integer program over the columns")
        began = process_time()
        whole = solve_whole(problem, columns, seconds=min(search.left * 0.5, _INTEGER_SECONDS))
        search.note("integer program over columns", began, whole.packing)
    if not search.is_done and is_tight and not search.is_impossible:
        _by_enumeration(search, generated, progress, steps=int(search.left * _STEPS_PER_SECOND))


def _by_enumeration(
    search: _Search, generated: Generated, progress: Callable[[str], None], steps: int = _STEPS
) -> None:
    """Raise the bound step by step while no packing of all possible patterns reaches it."""
    problem = search.problem
    if search.packing is None:
        _by_all_patterns(search, generated)
    for _ in range(_MOST_RAISES):
        if search.is_done or search.packing is None or search.left < 0.1:
            return
        progress(f"all patterns for {search.bound:,} {problem.unit}")
        began = process_time()
        packing, is_settled = _reach(search, generated, steps)
        raised = round_up(problem, search.bound + 1) if packing is None and is_settled else None
        search.note("all patterns", began, packing, raised)
        if raised is None:
            return


def _by_merging(search: _Search, generated: Generated, progress: Callable[[str], None]) -> None:
    """Raise the bound step by step while nothing fits on so many nodes, where size is all that counts."""
    problem = search.problem
    deadline = process_time() + search.left * 0.7
    while not search.is_done and process_time() < deadline:
        cost = problem.types[0].cost
        progress(f"merging for {search.bound:,} {problem.unit}")
        began = process_time()
        merged = fits_on(problem, generated, search.bound // cost, deadline)
        raised = search.bound + cost if merged.packing is None and merged.is_settled else None
        search.note("merging", began, merged.packing, raised)
        if raised is None:
            return


def _by_all_patterns(search: _Search, generated: Generated) -> None:
    """Find a first packing from every pattern there is, or that there is none."""
    began = process_time()
    columns = columns_within(search.problem, generated.proof, _ANY_OBJECTIVE, _MOST_COLUMNS)
    if columns is not None:
        whole = solve_whole(search.problem, columns, seconds=search.left)
        search.is_impossible = whole.packing is None and whole.is_settled
        search.note("all patterns", began, whole.packing)


def _reach(search: _Search, generated: Generated, steps: int) -> tuple[Packing | None, bool]:
    """Return a packing at the bound, or none and whether there is none.

    Instances worth nothing in the linear program are left out first: they add no cost there but very many patterns.
    Where the others alone do not fit, nothing does; where they do, the rest often has room beside them.
    """
    problem, proof = search.problem, generated.proof
    for core in dict.fromkeys((_core(problem, generated), problem)):
        columns = columns_within(core, proof, search.bound, _MOST_COLUMNS, steps)
        if columns is None:
            continue
        whole = solve_whole(core, columns, seconds=search.left, at_most=search.bound)
        if whole.packing is None:
            if whole.is_settled:
                return None, True
            continue
        packing = _with_rest(problem, whole.packing, search.deadline)
        if packing.is_complete(problem) and packing.objective(problem) <= search.bound:
            return packing, True
    return None, False


def _core(problem: Problem, generated: Generated) -> Problem:
    """Return the problem without the groups that are worth nothing on any node type."""
    groups = []
    for g, group in enumerate(problem.groups):
        own = problem.group_of == g
        is_worth = any(int(w[own].max()) > 0 for w in generated.proof.worth)
        groups.append(group if is_worth else replace(group, count=0))
    return replace(problem, groups=tuple(groups))


def _with_rest(problem: Problem, packing: Packing, deadline: float) -> Packing:
    """Return the packing with what it leaves out filled into its nodes."""
    nodes = Nodes(problem)
    for use in packing.uses:
        for _ in range(use.nodes):
            row = nodes.open(use.node_type)
            assert row is not None
            for choice, n in use.pattern:
                for _ in range(n):
                    nodes.put(row, choice)
    left = np.array(nodes.packing().missing, np.int64)
    return fill(problem, nodes, left, "best-fit", deadline=deadline).packing()


def _is_impossible(problem: Problem, bound: int) -> bool:
    """Return whether the bound is above what all nodes together cost, so that nothing complete exists."""
    if any(t.supply is None for t in problem.types):
        return False
    dearest = sum(t.cost * (t.supply or 0) for t in problem.types)
    dearest += sum((g.missing_cost or 0) * g.count for g in problem.groups)
    return bound > dearest


def _no_packing(problem: Problem, explain: bool) -> tuple[str, ...]:
    return explain_infeasible(problem, is_proven=True) if explain else ("There is no placement.",)
