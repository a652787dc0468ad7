"""What every room stands on: errors, units, random streams, registries. No I/O, imports nothing of ours."""
