"""Where it goes: one file per policy."""
