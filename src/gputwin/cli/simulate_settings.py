"""What the options of `gputwin simulate` say, as fields of a scenario."""

from __future__ import annotations

from collections.abc import Collection

from gputwin.cli.fairness import settings_of

_CAUSES = ("preset", "gpu_mtbf", "rack_mtbf", "log", "maintenance_period")
"""Settings of --faults that make a node fail or go, beside mtbf."""


def check_acts(given: Collection[str], elastic: str = "", faults: str = "", sharing: str = "") -> None:
    """Raise a user error for the first option that was given and cannot act beside the others; `given` are their names."""
    from gputwin.core.errors import UserError
    from gputwin.simulation.elasticity.sizes import SHRINK

    in_rounds = bool(elastic) and not elastic.startswith(f"{SHRINK}:") and "=" not in elastic.partition(":")[0]
    needed = {
        "round": ("planner", "elastic"),
        "repair": ("mtbf", "faults"),
        "carbon": ("power", "power_limit", "power_cap"),
    }
    for name, others in needed.items():
        if name in given and not set(others) & set(given):
            raise UserError(f"{_flag(name)} has no effect without {' or '.join(map(_flag, others))}")
    if {"round", "elastic"} <= set(given) and not in_rounds:
        raise UserError("--round has no effect: running jobs shrink when another comes, not at rounds; leave it out")
    for who in ("planner", *(("elastic",) if in_rounds else ())):
        for name in ("order", "backfill", "slurm_conf"):
            if who in given and name in given:
                raise UserError(f"{_flag(who)} decides who runs, so {_flag(name)} has no effect; leave out one of them")
    if "interference" in given and sharing == "exclusive":
        raise UserError(
            "--interference has no effect under --sharing exclusive, where no two jobs are on one GPU; leave out one of them"
        )
    known = settings_of("--faults", faults) or {}
    for name in ("mtbf", "repair"):
        if name in given and name in known:
            raise UserError(
                f"{_flag(name)} and --faults {name}={known[name]} say the same thing twice; give one of them"
            )
    if known and not {"mtbf", *_CAUSES} & {*known, *given}:
        raise UserError(f"--faults {faults}: nothing in it makes a node fail; give --mtbf, or {', '.join(_CAUSES)}")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def seconds_of(text: str) -> float:
    """Return a duration, as in 10m, in seconds."""
    from gputwin.core.units import parse_duration

    return parse_duration(text)


def speeds_of(text: str) -> dict[str, object] | None:
    """Return the rule of speed, or how fast each GPU model is, from --speed."""
    if ":" in text.partition("=")[0]:
        return {"policy": text}
    found = settings_of("--speed", text)
    return None if found is None else {"by_model": found}


def checkpoints_of(text: str) -> dict[str, object] | None:
    """Return when jobs save and what that takes, from --checkpoint."""
    from gputwin.simulation.checkpointing import RULES

    found = settings_of("--checkpoint", text)
    if found is None:
        return None
    if found.get("interval") in RULES:
        found["rule"] = found.pop("interval")
    times = ("interval", "save", "restart", "resize", "grace")
    return {f"{k}_seconds" if k in times else k: seconds_of(v) if k in times else v for k, v in found.items()}


def faults_of(text: str, mtbf: str | None, repair: str) -> dict[str, object] | None:
    """Return how nodes fail, from --faults and the two options that were there first."""
    found = settings_of("--faults", text)
    if found is None:
        return None if mtbf is None else {"mtbf_seconds": seconds_of(mtbf), "repair_seconds": seconds_of(repair)}
    planned = ("maintenance_period", "maintenance", "maintenance_notice")
    times = ("mtbf", "gpu_mtbf", "rack_mtbf", "rack_repair", *planned)
    given: dict[str, object] = {} if mtbf is None else {"mtbf_seconds": seconds_of(mtbf)}
    given["repair_seconds"] = seconds_of(found.pop("repair", repair))
    for name, value in found.items():
        if name in times:
            given[f"{name}_seconds"] = seconds_of(value)
        else:
            given["repair" if name == "repair_law" else name] = value
    return given


def elasticity_of(text: str, round: str) -> dict[str, object] | None:
    """Return the elastic policy and its settings, as in afs:most_gpus=8; without a name, how jobs are shrunk."""
    if not text:
        return None
    name, _, rest = text.partition(":")
    if "=" in name:
        return dict(settings_of("--elastic", text) or {})
    return {"policy": name, "round_seconds": seconds_of(round), **(settings_of("--elastic", rest) or {})}


def power_of(asked: bool, limits: str, caps: str, carbon: str) -> dict[str, object] | None:
    """Return what is to be known of power and how it is limited."""
    found, given = settings_of("--power-limit", limits), settings_of("--power-cap", caps)
    if not asked and found is None and given is None:
        return None
    names = {"node": "node_watts", "rack": "rack_watts", "over": "over_cap"}
    return {"limits": found or {}, "carbon": carbon, **{names.get(k, k): v for k, v in (given or {}).items()}}
