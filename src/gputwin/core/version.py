"""The version of gputwin."""

VERSION = "0.1.0"
