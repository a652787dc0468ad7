"""What would happen: the cluster, the workload, and the engine that runs one on the other."""
