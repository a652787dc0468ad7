"""The capacity that is safe for a target: theory for a first guess, simulation to settle it, drawn records to be sure."""
