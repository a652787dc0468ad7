"""The dashboard and its REST API. Nothing is computed here: rooms below are called, mostly in child processes."""
