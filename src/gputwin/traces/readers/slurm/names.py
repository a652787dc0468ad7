"""Slurm's short forms of many names: array ranges ("123_[5-9,20-30:5]") and host lists ("gpu[01-03,07],login1")."""

from __future__ import annotations

import itertools
import re

from gputwin.core.errors import UserError, shorten

MOST_NAMES = 1_000_000
_RANGE = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_HOST = re.compile(r"(?:[^\[\],]|\[[^\[\]]*\])+")


def expand_range(text: str) -> list[str]:
    """Return the numbers of "1-3,07,10-20:5" as text, with the leading zeros they are written with."""
    numbers: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if not match:
            raise UserError(f"'{shorten(text)}' is not a range; write one like 1-3,07")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if step == 0 or last < first or len(numbers) + (last - first) // step >= MOST_NAMES:
            raise UserError(f"'{shorten(text)}' names nothing, or more than {MOST_NAMES:,}")
        numbers += [str(n).zfill(len(match[1])) for n in range(first, last + 1, step)]
    return numbers


def expand_array(text: str) -> list[str]:
    """Return the task numbers inside the brackets of a pending array.

    A limit on how many may run at once ("%10") follows the list; Slurm ends a list of over 64 characters in dots.
    """
    return expand_range(text.partition("%")[0].removesuffix("...").rstrip(",-"))


def expand_hosts(text: str) -> list[str]:
    """Return the host names of a host list, each once, in order."""
    hosts: dict[str, None] = {}
    for part in _HOST.findall(text):
        pieces = _BRACKETS.split(part.strip())
        choices = [[piece] if i % 2 == 0 else expand_range(piece) for i, piece in enumerate(pieces)]
        count = 1
        for choice in choices:
            count *= len(choice)
        if len(hosts) + count > MOST_NAMES:
            raise UserError(f"'{shorten(text)}' names more than {MOST_NAMES:,} hosts")
        hosts |= dict.fromkeys("".join(names) for names in itertools.product(*choices))
    if not hosts or "[" in _BRACKETS.sub("", text) or "]" in _BRACKETS.sub("", text):
        raise UserError(f"'{shorten(text)}' is not a host list; write one like gpu[01-03],login1")
    return list(hosts)
