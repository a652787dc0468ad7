"""Pages generated from code."""
