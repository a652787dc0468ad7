"""The compiled event loop and its parts: state, index, queue, events, reservations, attribution."""
