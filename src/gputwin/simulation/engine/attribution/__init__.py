"""Why jobs wait: clocks per cause."""
