"""Whether and where an instance fits: room on a node, an index over all nodes, totals of each waiting request."""
