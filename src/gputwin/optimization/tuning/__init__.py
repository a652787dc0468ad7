"""Tuning: which configuration of the scheduler is best, found with few simulations and tested before it is adopted."""
