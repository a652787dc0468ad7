"""Every scaling rule by name: what it does, where it comes from, and how to make one from text or plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from gputwin.autoscaling.decisions.interface import Autoscaler, Rule
from gputwin.autoscaling.decisions.plain import from_plain, record_fields, to_plain
from gputwin.core.errors import UserError
from gputwin.core.registry import Registry


@dataclass(frozen=True)
class RuleKind:
    """A kind of scaling rule: its class holds the parameters."""

    name: str
    rule: str
    make: type[Any]
    source: str = ""

    def numbers(self) -> dict[str, float]:
        """Return the parameters that are numbers, with their defaults."""
        defaults = {field.name: field.default for field in dataclasses.fields(self.make)}
        return {k: v for k, v in defaults.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}


RULES: Registry[RuleKind] = Registry("scaling rule", "gputwin.autoscaling.decisions.rules")
"""Rules that decide by themselves and limits around another rule (those have a parameter `inner`)."""

Made = TypeVar("Made", bound=type[Any])


def scaling_rule(rule: str, *, source: str = "") -> Callable[[Made], Made]:
    """Return a decorator that registers a frozen dataclass with a `name` as a scaling rule."""

    def register(made: Made) -> Made:
        RULES.add(RuleKind(made.name, rule, made, source))
        return made

    return register


def make_rule(name: str, **parameters: Any) -> Rule[Any]:
    """Return the rule called `name` with these parameters; a wrong name or value is a user error."""
    return rule_from_plain({"rule": name, **parameters})


def rule_to_plain(rule: Rule[Any]) -> dict[str, Any]:
    """Return the rule as JSON values: its name under "rule", then its parameters."""
    plain = to_plain(rule)
    assert isinstance(plain, dict)
    return plain


def rule_from_plain(plain: object, where: str = "") -> Rule[Any]:
    """Return the rule written as {"rule": name, parameter: value, …}; errors name the path of the wrong value."""
    if not isinstance(plain, Mapping):
        if hasattr(plain, "decide"):
            return cast(Rule[Any], plain)
        raise UserError(f"{where or 'rule'}: give a mapping with the key 'rule', not {plain!r}")
    settings = {key: value for key, value in plain.items() if key != "rule"}
    if "rule" not in plain:
        raise UserError(f"{where or 'rule'}: the key 'rule' is missing; known: {', '.join(RULES.names())}")
    made: Rule[Any] = from_plain(RULES.get(str(plain["rule"])).make, settings, where or str(plain["rule"]))
    return made


def parse_rule(text: str) -> Rule[Any]:
    """Return the rule written as "name" or "name:parameter=value,…", with limits around it: "threshold+velocity:factor=0.5".

    Values are numbers, true, false, none or words; parameters that are lists need a manifest or plain values.
    """
    first, *around = text.split("+")
    rule = make_rule(*_split(first)[:1], **_split(first)[1])
    for part in around:
        name, settings = _split(part)
        if not any(field.name == "inner" for field in dataclasses.fields(RULES.get(name).make)):
            raise UserError(f"'{text}': '{name}' is no limit around another rule; write it first")
        rule = make_rule(name, inner=rule, **settings)
    return rule


def _split(text: str) -> tuple[str, dict[str, Any]]:
    name, _, rest = text.strip().partition(":")
    settings: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise UserError(f"'{text}': write parameters as name:parameter=value, as in velocity:factor=0.5")
        settings[key.strip()] = _value(value.strip())
    return name, settings


def _value(text: str) -> Any:
    named = {"true": True, "false": False, "none": None}
    if text.lower() in named:
        return named[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def autoscaler_to_plain(autoscaler: Autoscaler[Any]) -> dict[str, Any]:
    """Return rule and memory as JSON values, to stop here and go on later or elsewhere."""
    return {"rule": rule_to_plain(autoscaler.rule), "memory": to_plain(autoscaler.memory)}


def autoscaler_from_plain(plain: Mapping[str, Any]) -> Autoscaler[Any]:
    """Return the autoscaler written by `autoscaler_to_plain`; it decides as the saved one would have."""
    rule = rule_from_plain(plain["rule"])
    return Autoscaler(rule, memory_from_plain(rule, plain["memory"]))


def memory_from_plain(rule: Rule[Any], plain: object) -> Any:
    """Return a memory of `rule` from JSON values."""
    blank = rule.start()
    names = record_fields(type(blank))
    if names is None:
        return plain
    if not isinstance(plain, Mapping):
        raise UserError(f"memory of '{rule.name}': give a mapping, not {plain!r}")
    settings = dict(plain)
    for name in names:
        inner: Any = getattr(rule, name, None)
        # The memory of a rule around others has a field by the name of each of them.
        if hasattr(inner, "decide") and name in settings:
            settings[name] = memory_from_plain(inner, settings[name])
    return from_plain(type(blank), settings, f"memory of '{rule.name}'")
