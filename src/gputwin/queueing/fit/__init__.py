"""Parameters of queueing models, fitted from a trace: arrivals, service times, classes; and how well they fit."""
