"""Who may overtake a job that does not fit: one file per rule."""
