"""Best settings, found by theory, simulation and solvers: capacity plans, placement, tuning."""
