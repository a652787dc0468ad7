"""Where the `gputwin` command begins: Ctrl-C while it still loads ends it without a word, as the system does."""

from __future__ import annotations

import signal


def run() -> None:
    """Load the command line and run it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from gputwin.cli.main import run as run_command

    run_command()
