"""Scaling rules: one file each; each registers itself."""
