"""`python -m gputwin`: the same as the command `gputwin`."""

from gputwin.cli.start import run

if __name__ == "__main__":
    run()
