"""One file per trace format; each registers its reader when imported."""
