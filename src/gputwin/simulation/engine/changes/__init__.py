"""What happens to running jobs: failures, rates, other sizes."""
