"""What is kept free for jobs that wait: for the first blocked job (EASY) or for everybody (conservative)."""
