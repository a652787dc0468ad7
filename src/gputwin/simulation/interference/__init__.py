"""How much jobs on one GPU slow each other: measured pairs, a model for unmeasured ones, and which type a job is of."""
