"""Spot capacity for one job: when to use it with a deadline, how often to save, and what it is expected to cost."""
