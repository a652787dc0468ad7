"""How fast a job runs: one file per rule."""
