"""KEDA's composite metric: a formula over trigger values, as in `queue > 100 ? queue / 2 : max(cpu, 1)`.

Arithmetic, comparisons, `&& || !`, `a ? b : c`, lists with conditions on their elements, as in
`count([a, b, c], {# > 1})`, and the functions below; nothing else can be called. Source: KEDA, "Scaling modifiers"
(expr-lang).
"""

from __future__ import annotations

import functools
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Node = Callable[[Mapping[str, float]], Any]
"""A part of a formula: its value, a number or a list, given the triggers' values."""

_TOKEN = re.compile(
    r"\s*(?:(\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)|([A-Za-z_][\w]*)|(\*\*|&&|\|\||[<>=!]=|[-+*/%^()?:,<>!\[\]{}#]))"
)
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": lambda *x: min(_flat(x)),
    "max": lambda *x: max(_flat(x)),
    "abs": abs,
    "ceil": lambda x: float(math.ceil(x)),
    "floor": lambda x: float(math.floor(x)),
    "round": lambda x: float(math.floor(x + 0.5)),
    "int": lambda x: float(math.trunc(x)),
    "float": float,
    "sum": lambda *x: float(sum(_flat(x))),
    "mean": lambda *x: statistics.fmean(_flat(x)),
    "median": lambda *x: statistics.median(_flat(x)),
    "len": lambda x: float(len(x)),
}
_BY_ELEMENT: dict[str, Callable[[list[float], list[Any]], Any]] = {
    "count": lambda elements, results: float(sum(map(bool, results))),
    "any": lambda elements, results: float(any(results)),
    "all": lambda elements, results: float(all(results)),
    "none": lambda elements, results: float(not any(results)),
    "one": lambda elements, results: float(sum(map(bool, results)) == 1),
    "sum": lambda elements, results: float(sum(results)),
    "map": lambda elements, results: results,
    "filter": lambda elements, results: [e for e, keep in zip(elements, results, strict=True) if keep],
}
"""Functions of a list and what `{…}` gives for each element, which is written `#`."""
_ELEMENT = "#"
_WORDS = {"and": "&&", "or": "||", "not": "!"}
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("==", "!=", "<", ">", "<=", ">="),
    ("+", "-"),
    ("*", "/", "%"),
)
_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "==": lambda a, b: float(a == b),
    "!=": lambda a, b: float(a != b),
    "<": lambda a, b: float(a < b),
    ">": lambda a, b: float(a > b),
    "<=": lambda a, b: float(a <= b),
    ">=": lambda a, b: float(a >= b),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": math.fmod,
    "**": lambda a, b: a**b,
    "^": lambda a, b: a**b,
}


@functools.lru_cache(maxsize=256)
def compiled(text: str) -> Node:
    """Return the formula as a function of trigger values; `ValueError` says what is wrong with it.

    Calling it may raise `KeyError` (a trigger without a value) or `ArithmeticError` (division by zero).
    """
    parser = _Parser(text)
    node = parser.conditional()
    if parser.at != len(parser.tokens):
        raise ValueError(f"the formula '{text}' has a stray '{parser.tokens[parser.at]}'")
    return node


def names(text: str) -> tuple[str, ...]:
    """Return the triggers a formula reads, sorted."""
    words = (word for word in _Parser(text).tokens if re.match(r"[A-Za-z_]", word))
    return tuple(sorted({word for word in words if word not in (*_FUNCTIONS, *_BY_ELEMENT, "true", "false")}))


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        self.at = 0
        position = 0
        stripped = text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None:
                raise ValueError(f"the formula '{text}' has something unknown at '{stripped[position:][:10]}'")
            token = match.group(match.lastindex or 0).strip()
            self.tokens.append(_WORDS.get(token, token))
            position = match.end()

    def _next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self, token: str) -> None:
        if self._next() != token:
            raise ValueError(f"the formula '{self.text}' lacks '{token}'")
        self.at += 1

    def conditional(self) -> Node:
        condition = self._binary(0)
        if self._next() != "?":
            return condition
        self._take("?")
        yes = self.conditional()
        self._take(":")
        no = self.conditional()
        return lambda values: yes(values) if condition(values) else no(values)

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self._next() in _LEVELS[level]:
            operator = self._next()
            self.at += 1
            left = _joined(operator, left, self._binary(level + 1))
        return left

    def _unary(self) -> Node:
        token = self._next()
        if token in ("-", "+", "!"):
            self.at += 1
            inner = self._unary()
            if token == "!":
                return lambda values: float(not inner(values))
            return (lambda values: -inner(values)) if token == "-" else inner
        return self._power()

    def _power(self) -> Node:
        """Return a power: it binds closer than a sign before it."""
        base = self._primary()
        if self._next() in ("**", "^"):
            self.at += 1
            return _joined("**", base, self._unary())
        return base

    def _primary(self) -> Node:
        token = self._next()
        if token == "":
            raise ValueError(f"the formula '{self.text}' ends too early")
        self.at += 1
        if token == "(":
            inner = self.conditional()
            self._take(")")
            return inner
        if token[0].isdigit() or token[0] == ".":
            number = float(token)
            return lambda values: number
        if token == "[":
            entries = self._separated("]")
            return lambda values: [entry(values) for entry in entries]
        if token in ("true", "false"):
            truth = float(token == "true")
            return lambda values: truth
        if not (token[0].isalpha() or token[0] in "_#"):
            raise ValueError(f"the formula '{self.text}' has '{token}' where a value belongs")
        if self._next() == "(":
            return self._call(token)
        return lambda values: values[token]

    def _separated(self, end: str) -> list[Node]:
        """Return what stands between commas up to `end`; a condition in braces is one of them."""
        found: list[Node] = []
        while self._next() != end or not found:
            if found:
                self._take(",")
            if self._next() == "{":
                self._take("{")
                found.append(self.conditional())
                self._take("}")
            else:
                found.append(self.conditional())
        self._take(end)
        return found

    def _call(self, name: str) -> Node:
        if name not in _FUNCTIONS and name not in _BY_ELEMENT:
            known = ", ".join(sorted({*_FUNCTIONS, *_BY_ELEMENT}))
            raise ValueError(f"the formula '{self.text}' calls '{name}'; it may call: {known}")
        self._take("(")
        arguments = self._separated(")")
        if name in _BY_ELEMENT and self.tokens[self.at - 2] == "}":
            if len(arguments) != 2:
                raise ValueError(f"the formula '{self.text}' calls '{name}' without a list and one condition")
            return _by_element(name, *arguments)
        if name not in _FUNCTIONS:
            raise ValueError(f"the formula '{self.text}' calls '{name}' without a condition in braces")
        function = _FUNCTIONS[name]
        return lambda values: function(*(argument(values) for argument in arguments))


def _by_element(name: str, listed: Node, condition: Node) -> Node:
    function = _BY_ELEMENT[name]

    def evaluated(values: Mapping[str, float]) -> Any:
        elements = listed(values)
        return function(elements, [condition({**values, _ELEMENT: element}) for element in elements])

    return evaluated


def _flat(given: Iterable[Any]) -> list[float]:
    """Return numbers and those in lists one after the other: expr-lang takes both."""
    return [x for entry in given for x in (entry if isinstance(entry, list) else [entry])]


def _joined(operator: str, left: Node, right: Node) -> Node:
    if operator == "&&":
        return lambda values: float(bool(left(values)) and bool(right(values)))
    if operator == "||":
        return lambda values: float(bool(left(values)) or bool(right(values)))
    operation = _OPERATIONS[operator]
    return lambda values: operation(left(values), right(values))
