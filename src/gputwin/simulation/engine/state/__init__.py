"""What a run consists of: nodes, jobs, events, what runs where, what jobs lived through, and the series."""
