"""What knowing durations is worth to a scheduler."""
