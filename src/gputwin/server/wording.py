"""Messages in the words of pages and the REST API: fields of a form where the command line has options."""

from __future__ import annotations

import re

_FIELDS = {
    "cluster": "“Cluster”",
    "format": "“Format”",
    "guess": "“Guess what columns mean”",
    "lenient": "“Accept cells that do not parse”",
    "map": "“What columns mean”",
    "zone": "“Time zone”",
}
_CHECKED = ("guess", "lenient")
_OF_OTHERS = frozenset({"delimiter"})
"""Options of other programs: `sacct --delimiter`."""
_WHY = re.compile(r"; --guess shows why")
_MAPPING = re.compile(r"pass --map '([^']*)'(?: --table \w+)?")
_CHECK = re.compile(rf"pass --({'|'.join(_CHECKED)})\b")
_OPTION = re.compile(r"--([a-z][a-z-]*)\b")


def in_page(text: str) -> str:
    """Return a message that names no option of the command line, only fields that a page has."""
    text = _WHY.sub("", text)
    text = _MAPPING.sub(lambda m: f"put {m[1]} into {_FIELDS['map']}", text)
    text = _CHECK.sub(lambda m: f"tick {_FIELDS[m[1]]}", text)

    def named(match: re.Match[str]) -> str:
        name = match[1]
        return match[0] if name in _OF_OTHERS else _FIELDS.get(name, f"“{name.replace('-', ' ')}”")

    return _OPTION.sub(named, text)
