"""Duration models: one file per kind."""
