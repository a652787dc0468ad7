"""How many nodes or replicas, and when: decision rules, their manifests, node pools, serving and cost."""
