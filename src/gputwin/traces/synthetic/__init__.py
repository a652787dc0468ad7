"""Synthetic traces fitted to what is published of real ones, and how close they come."""

from gputwin.traces.synthetic.fidelity import compare, fidelity
from gputwin.traces.synthetic.generator import Synthetic, generate
from gputwin.traces.synthetic.publisher import write_pai2020
from gputwin.traces.synthetic.recipe import RECIPES

NAMES: tuple[str, ...] = tuple(RECIPES.names())

__all__ = ["NAMES", "Synthetic", "compare", "fidelity", "generate", "write_pai2020"]
