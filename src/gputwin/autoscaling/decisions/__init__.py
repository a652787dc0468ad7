"""How many replicas, decided from one observation: a pure function, the same object in simulation and live."""
