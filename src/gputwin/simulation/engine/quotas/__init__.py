"""Trees of quotas in a run: what queues may take, and whom they preempt (Kueue)."""
