"""Elastic jobs: how fast they run on n GPUs, how well they use them, and who should get the next one."""
