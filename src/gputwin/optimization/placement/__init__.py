"""Best placement of instances on nodes: fewest nodes, least cost, most demand, fewest moves, each with a lower bound."""
