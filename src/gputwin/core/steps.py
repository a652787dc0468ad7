"""What a step of long work says of how far it is."""

from __future__ import annotations

import re

PART = re.compile(r"(\d[\d,]*) of (\d[\d,]*)")


def share_done(step: str) -> float | None:
    """Return the share that a step like "trial 3 of 20" says is done before it; None where it says none.

    Of "model 3 of 17, fit 2 of 10" the second is a part of the first.
    """
    done, width, is_known = 0.0, 1.0, False
    for part, whole in ((int(a.replace(",", "")), int(b.replace(",", ""))) for a, b in PART.findall(step)):
        if not 0 < part <= whole:
            break
        done, width, is_known = done + width * (part - 1) / whole, width / whole, True
    return done if is_known else None
