"""The REST API: one file per thing one can ask about."""
