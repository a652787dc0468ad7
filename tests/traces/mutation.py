"""Damaged JSON documents, for the property that no damage is more than an input error."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

_NUMBERS = [0, -1, 3.7, 1e300, 10**30]
_TEXTS = ["", "x", "-5", "1e5", "\ud800", "0001-01-01T00:00:00Z"]
_JUNK = [None, True, [], {}, [{}], {"a": 1}, *_NUMBERS, *_TEXTS]


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from _places(value[key], (*path, key))


@st.composite
def mutated(draw: st.DrawFn, document: Any) -> Any:
    """Draw `document` with a few values replaced, removed or repeated."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(document))
        if not places:
            break
        *path, key = draw(st.sampled_from(places))
        parent = document
        for step in path:
            parent = parent[step]
        action = draw(st.sampled_from(["replace", "remove", "repeat"]))
        if action == "remove":
            del parent[key]
        elif action == "repeat" and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[key]))
        else:
            parent[key] = copy.deepcopy(draw(st.sampled_from(_JUNK)))
    return document
