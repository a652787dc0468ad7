"""What options say about fairness between tenants: the rule, quotas, terms of tenants, Slurm's priority weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_RESOURCES = ("cpu", "memory", "gpu", "gpu_memory")


def settings_of(option: str, text: str) -> dict[str, str] | None:
    """Return the settings of "name=value,…"; None where nothing is given."""
    from gputwin.core.errors import UserError

    if not text:
        return None
    parts = [part.partition("=") for part in text.split(",")]
    if not all(name and equals and value for name, equals, value in parts):
        by_file = (
            "" if option not in ("--quota", "--guarantee") else "; names that have = or , go into a file, see --tenants"
        )
        raise UserError(f"{option} {text}: write name=value,name=value{by_file}")
    names = [name.strip() for name, _, _ in parts]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"{option} {text}: '{twice}' is given twice; give it once")
    return {name.strip(): value.strip() for name, _, value in parts}


def fairness_from(rule: str, quotas: str, guarantees: str, terms: Sequence[str], file: Path | None) -> object:
    """Return the rule of fairness with the quotas, guarantees and terms of tenants; None where nothing is given."""
    from gputwin.core.errors import UserError

    limits, guaranteed = settings_of("--quota", quotas), settings_of("--guarantee", guarantees)
    by_quota = limits is not None or guaranteed is not None
    if not by_quota and not terms and file is None:
        return rule or None
    if by_quota and rule.partition(":")[0] not in ("", "quota"):
        raise UserError(
            f"--quota goes with --fairness quota, not with {rule}; a scenario can give limits to other rules"
        )
    policy = rule or ("quota" if by_quota else "none")
    if guaranteed is not None and "reclaim=" not in policy:
        # Tenants that are not named have no guarantee.
        policy += ("," if ":" in policy else ":") + "reclaim=1" + ("" if "guaranteed=" in policy else ",guaranteed=0")
    given = _terms_in(file) if file is not None else {"tenants": {}}
    tenants: dict[str, dict[str, Any]] = dict(given.get("tenants") or {})
    for text in terms:
        name, more = _terms_of(text)
        tenants[name] = {**tenants.get(name, {}), **more}
    for term, found in (("gpus", limits), ("guaranteed", guaranteed)):
        for name, gpus in (found or {}).items():
            if term in tenants.get(name, {}):
                option = {"gpus": "--quota", "guaranteed": "--guarantee"}[term]
                raise UserError(f"{option} {name}={gpus}: its terms have {term} already; give it once")
            tenants[name] = {**tenants.get(name, {}), term: gpus}
    return {**given, "policy": policy, "tenants": tenants}


def queues_from(rule: str, queues: str, default_queue: str, others: bool) -> object:
    """Return the rule of fairness between Kueue's queues; None where no queues are given.

    `others`: whether other options say what tenants may hold.
    """
    from gputwin.core.errors import UserError

    if not (queues or default_queue):
        return None
    if others:
        raise UserError("--queues has the quotas and weights; leave out --quota, --guarantee, --tenant and --tenants")
    return {
        "policy": rule or "kueue-classical",
        "queues": queues or None,
        "default_queue": default_queue or None,
    }


def _terms_of(text: str) -> tuple[str, dict[str, Any]]:
    """Return a tenant and its terms, of "name:weight=2,group=a/b" (weight.gpu=2: for one resource alone)."""
    from gputwin.core.errors import UserError

    name, _, rest = text.rpartition(":")
    if not name or not rest:
        raise UserError(f"--tenant {text}: write NAME:weight=2,group=research")
    terms: dict[str, Any] = {}
    for key, value in (settings_of("--tenant", rest) or {}).items():
        what, _, resource = key.partition(".")
        if what == "weight" and resource in _RESOURCES:
            terms.setdefault("weights", {})[resource] = value
        elif key in ("weight", "group", "gpus"):
            terms[key] = value
        else:
            raise UserError(f"--tenant {text}: no term '{key}'; there are weight, weight.RESOURCE, group, gpus")
    return name, terms


def _terms_in(file: Path) -> dict[str, Any]:
    """Return the terms in a YAML file with the fields `tenants` and `groups` of a scenario's fairness."""
    import yaml

    from gputwin.core.errors import InputError, shorten

    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"not a file of tenants ({shorten(error, 100)})", file=file) from None
    if not isinstance(data, dict) or not data.keys() <= {"tenants", "groups"}:
        raise InputError("has other fields than tenants and groups", file=file, remedy="see docs/fairness.md")
    if not all(isinstance(part, dict) for part in data.values()):
        raise InputError("tenants and groups are not names with values", file=file, remedy="see docs/fairness.md")
    return data


def order_of_slurm_conf(file: Path, order: str | None, warn: Callable[[str], None]) -> dict[str, Any]:
    """Return the order slurm-multifactor with the values of a slurm.conf; warn of what has no effect."""
    from gputwin.core.errors import UserError
    from gputwin.simulation.slurm.config import read_priority_settings
    from gputwin.simulation.slurm.order import NAME, not_used, parameters_of

    if order not in (None, NAME):
        raise UserError(f"--slurm-conf gives the values of --order {NAME}, not of {order}; leave out one of them")
    settings = read_priority_settings(file)
    if without := not_used(settings):
        warn(f"{file}: {', '.join(without)} has no effect: traces have no such ratings of jobs")
    if settings.not_simulated:
        warn(f"{file}: {', '.join(settings.not_simulated)} is not simulated")
    return {"name": NAME, "parameters": parameters_of(settings)}
