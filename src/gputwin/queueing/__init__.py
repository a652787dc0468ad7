"""What theory says: queueing models as pure functions, and their parameters fitted from a trace.

Rates are per second, times in seconds, `load` is in erlangs (mean number of servers busy if there were no end of them).
Each function states its assumptions and its source; where no steady state exists, `UnstableError` says so in words.
"""
