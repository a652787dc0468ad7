"""About twenty-five schedulers on the same jobs: one table, and what of the literature holds there."""
