"""Least capacity that meets a target: theory for a first bracket, simulation to settle it."""
