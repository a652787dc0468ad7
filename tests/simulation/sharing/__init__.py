"""Tests of how GPUs are shared."""
