"""How a GPU is divided among jobs: one file per rule."""
