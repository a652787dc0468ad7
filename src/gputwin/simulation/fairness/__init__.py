"""Fairness between tenants: whose turn it is, and who must hold back. One rule per file."""
