"""Kinds of jobs: clusters of what they ask for and use, described, and recognised at submit."""
