"""How to cut GPUs into MIG instances: legal layouts, the best layouts of a fleet for a mix of sizes, and re-cutting."""
