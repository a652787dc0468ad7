"""Models: one file per family; each registers its own. Baselines are peers of the clever ones."""
