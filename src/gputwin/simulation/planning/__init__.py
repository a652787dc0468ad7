"""Plans made in Python at rounds: shares of time on each GPU model for every active job."""
