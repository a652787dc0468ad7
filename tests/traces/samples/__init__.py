"""Small valid inputs, one module per reader, for the battery every reader must pass.

A module is named like its reader and has `write(folder) -> list[Path]`, which writes the raw files, and `ROWS`, the
rows each canonical table must then have.
"""
