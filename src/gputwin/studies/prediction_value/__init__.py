"""The value of predicted durations to a scheduler."""
