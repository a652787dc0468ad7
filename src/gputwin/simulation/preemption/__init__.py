"""Who must yield: one file per rule."""
