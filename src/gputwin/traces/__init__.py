"""What happened: raw files of any known format become one canonical trace and a data-quality report."""
