"""Scenarios side by side: published results reproduced, and comparisons of runs."""
