"""Failures of more than single nodes: racks, GPUs, logs that are replayed, rolling maintenance, published rates."""
