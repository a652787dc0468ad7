"""mig-parted files: layouts of a node's GPUs as YAML, read and written.

https://github.com/NVIDIA/mig-parted: `version`, and `mig-configs` by name, each a list of rules with `devices` (`all` or
numbers), `mig-enabled` and `mig-devices` (profile: instances).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gputwin.core.errors import InputError
from gputwin.optimization.mig.layouts import Layout, Mix, Slot, layouts, mix_of
from gputwin.simulation.mig_profiles import MigGpu

_REMEDY = "see docs/optimization.md for an example"


def read_parted(
    path: Path,
    gpu: MigGpu,
    gpus: int,
    config: str | None = None,
    *,
    known: Mapping[int, frozenset[Slot]] | None = None,
) -> tuple[Layout, ...]:
    """Return the layout of each GPU by one configuration of the file; the only one where none is named.

    A file says how many instances of a profile a GPU has, not where they start: they stand where those of `known` (by GPU)
    leave room, or anywhere.
    """
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path, remedy="check the path") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not YAML ({str(error).splitlines()[0]})", file=path, remedy=_REMEDY) from None
    configs = data.get("mig-configs") if isinstance(data, dict) else None
    if not isinstance(configs, dict) or not configs:
        raise InputError("no mig-configs", file=path, field="mig-configs", remedy=_REMEDY)
    if config is None and len(configs) > 1:
        names = ", ".join(map(str, configs))
        raise InputError("several configurations", file=path, remedy=f"name one of {names} after a colon: FILE:NAME")
    name = config if config is not None else next(iter(configs))
    if name not in configs:
        raise InputError(f"no configuration '{name}'", file=path, remedy=f"known: {', '.join(map(str, configs))}")
    rules = configs[name]
    if not isinstance(rules, list):
        raise InputError("a configuration is a list of rules", file=path, field=str(name), remedy=_REMEDY)
    found: list[Layout] = [()] * gpus
    for i, rule in enumerate(rules):
        where = f"{name}.{i}"
        if not isinstance(rule, dict):
            raise InputError("a rule has devices and mig-devices", file=path, field=where, remedy=_REMEDY)
        for device in _devices(rule, gpus, path, where):
            found[device] = _layout(rule, gpu, (known or {}).get(device, frozenset()), path, where)
    return tuple(found)


def _devices(rule: Mapping[str, Any], gpus: int, path: Path, where: str) -> Sequence[int]:
    devices = rule.get("devices", "all")
    if devices == "all":
        return range(gpus)
    if not isinstance(devices, list) or not all(isinstance(d, int) and 0 <= d < gpus for d in devices):
        raise InputError(
            f"devices must be 'all' or numbers from 0 to {gpus - 1}",
            file=path,
            field=f"{where}.devices",
            remedy=_REMEDY,
        )
    return devices


def _layout(rule: Mapping[str, Any], gpu: MigGpu, standing: frozenset[Slot], path: Path, where: str) -> Layout:
    wanted = rule.get("mig-devices", {}) if rule.get("mig-enabled", True) else {}
    field = f"{where}.mig-devices"
    if not isinstance(wanted, dict) or not all(isinstance(n, int) and n >= 0 for n in wanted.values()):
        raise InputError("mig-devices are numbers by profile", file=path, field=field, remedy=_REMEDY)
    known = {p.name for p in gpu.profiles}
    for name in wanted:
        if name not in known:
            remedy = f"known: {', '.join(p.name for p in gpu.profiles)}"
            raise InputError(f"{gpu.name} has no profile '{name}'", file=path, field=field, remedy=remedy)
    mix = tuple(sorted((str(n), c) for n, c in wanted.items() if c))
    layout = place_mix(gpu, mix, standing) or place_mix(gpu, mix)
    if layout is None:
        raise InputError(f"{dict(wanted)} do not fit on one {gpu.name}", file=path, field=field, remedy="ask for fewer")
    return layout


def place_mix(gpu: MigGpu, mix: Mix, known: frozenset[Slot] = frozenset()) -> Layout | None:
    """Return a legal layout with this mix in which these slots are; None where there is none."""
    names = tuple(sorted(name for name, _ in mix))
    return next((layout for layout in layouts(gpu, names) if mix_of(layout) == mix and known <= set(layout)), None)


def parted_text(configs: Mapping[str, Sequence[Layout]]) -> str:
    """Return the layouts as a mig-parted file, a configuration per name: GPUs of the same mix in one rule."""
    import yaml

    written = {name: _rules(after) for name, after in configs.items()}
    return yaml.safe_dump({"version": "v1", "mig-configs": written}, sort_keys=False)


def _rules(after: Sequence[Layout]) -> list[dict[str, Any]]:
    devices: dict[Mix, list[int]] = {}
    for i, layout in enumerate(after):
        devices.setdefault(mix_of(layout), []).append(i)
    return [
        {
            "devices": numbers,
            "mig-enabled": bool(mix),
            "mig-devices": dict(mix),
        }
        for mix, numbers in sorted(devices.items(), key=lambda item: item[1][0])
    ]
