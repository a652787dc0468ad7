"""One scheduling pass under each rule of overtaking and preemption."""
