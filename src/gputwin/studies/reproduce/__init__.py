"""Published results, ours beside theirs: one file per paper."""
