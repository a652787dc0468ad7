"""Parts for the test of how compiled functions are put together: a small one, a large one and one that calls both."""

from __future__ import annotations

import json
from typing import Any

from gputwin.core.machine_code import config
from gputwin.simulation.engine.compiled import compiled, compiled_as, inlined


@inlined
def plus(x: float, y: float) -> float:
    """Return a sum."""
    return x + y


@compiled
def large(x: float) -> float:
    """Return x reduced step by step, in more instructions than are inlined."""
    for _ in range(3):
        x = x / 2.0 if x > 100.0 else x + 1.0
        x = x / 3.0 if x > 90.0 else x * 1.5
        x = x / 5.0 if x > 80.0 else x - 0.5
        x = x / 7.0 if x > 70.0 else x + 0.25
        x = x / 11.0 if x > 60.0 else x * 1.25
        x = x / 13.0 if x > 50.0 else x - 0.125
    return x


@compiled
def both(x: float) -> float:
    """Return what the others make of it."""
    return plus(large(x), large(plus(x, 50.0)))


def entry(x: float) -> float:
    """Return what is called from outside."""
    return plus(both(x), 1.0)


if __name__ == "__main__":
    made: Any = compiled_as(entry, "float64(float64)")
    found: dict[str, Any] = {"values": [made(float(x)) for x in range(0, 200, 7)]}
    if not config.DISABLE_JIT:
        dispatchers: dict[str, Any] = {"plus": plus, "large": large, "both": both, "entry": made}
        for name, dispatcher in dispatchers.items():
            for version in dispatcher.overloads.values():
                # What came from the cache does not show its code.
                module = version.library._final_module
                code = [f.name for f in module.functions if not f.is_declaration and "__main__" in f.name]
                found[name] = {"code_of": len(code), "machine_code": getattr(version.library, "_compiled", False)}
        found["hits"] = {name: sum(d.stats.cache_hits.values()) for name, d in dispatchers.items()}
    print(json.dumps(found))
