"""Who goes next: one file per policy."""
