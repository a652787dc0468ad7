"""Who waits, in which order, and who may start now."""
