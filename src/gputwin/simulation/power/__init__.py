"""Power: what GPUs and servers draw, what a power limit costs in speed, energy and carbon of a run."""
