"""Optimal schedules of small cases, to measure how far online policies are from the best."""
