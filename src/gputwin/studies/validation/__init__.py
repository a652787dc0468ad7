"""Theory beside simulation: every queueing model against a simulation of it, and both beside a trace."""
