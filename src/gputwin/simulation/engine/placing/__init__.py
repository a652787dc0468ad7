"""Finding nodes and devices for a whole gang."""
