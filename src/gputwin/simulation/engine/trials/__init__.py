"""Trying without doing: what a trial changes is written down, and undone to the last byte."""
