"""The serving simulator: requests, replicas that come and go, and continuous batching of tokens."""
