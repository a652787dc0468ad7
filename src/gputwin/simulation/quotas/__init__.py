"""Quotas of queues in a tree of cohorts: nominal, borrowing and lending limits, fair shares, and whom to preempt."""
