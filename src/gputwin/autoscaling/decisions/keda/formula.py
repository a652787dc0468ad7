"""KEDA's composite metric: a formula over trigger values, as in `queue > 100 ? queue / 2 : max(cpu, 1)`.

Arithmetic, comparisons, `&& || !`, `a ? b : c`, and the functions below; nothing else can be called. Source: KEDA,
"Scaling modifiers" (expr-lang).
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping

Node = Callable[[Mapping[str, float]], float]

_TOKEN = re.compile(
    r"\s*(?:(\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)|([A-Za-z_][\w]*)|(\*\*|&&|\|\||[<>=!]=|[-+*/%^()?:,<>!\[\]]))"
)
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "ceil": lambda x: float(math.ceil(x)),
    "floor": lambda x: float(math.floor(x)),
    "round": lambda x: float(math.floor(x + 0.5)),
    "int": lambda x: float(math.trunc(x)),
    "float": float,
    "sum": lambda *x: float(sum(x)),
    "mean": lambda *x: sum(x) / len(x),
    "median": lambda *x: (sorted(x)[(len(x) - 1) // 2] + sorted(x)[len(x) // 2]) / 2,
}
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
    return tuple(sorted({word for word in words if word not in _FUNCTIONS and word not in ("true", "false")}))


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
            return self._power()
        left = self._binary(level + 1)
        while self._next() in _LEVELS[level]:
            operator = self._next()
            self.at += 1
            left = _joined(operator, left, self._binary(level + 1))
        return left

    def _power(self) -> Node:
        base = self._unary()
        if self._next() in ("**", "^"):
            self.at += 1
            exponent = self._power()
            return _joined("**", base, exponent)
        return base

    def _unary(self) -> Node:
        token = self._next()
        if token in ("-", "+", "!"):
            self.at += 1
            inner = self._unary()
            if token == "!":
                return lambda values: float(not inner(values))
            return (lambda values: -inner(values)) if token == "-" else inner
        return self._primary()

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
        if token in ("true", "false"):
            truth = float(token == "true")
            return lambda values: truth
        if not (token[0].isalpha() or token[0] == "_"):
            raise ValueError(f"the formula '{self.text}' has '{token}' where a value belongs")
        if self._next() == "(":
            return self._call(token)
        return lambda values: values[token]

    def _call(self, name: str) -> Node:
        if name not in _FUNCTIONS:
            known = ", ".join(sorted(_FUNCTIONS))
            raise ValueError(f"the formula '{self.text}' calls '{name}'; it may call: {known}")
        self._take("(")
        # expr-lang writes lists in brackets: sum([a, b]).
        bracket = self._next() == "["
        if bracket:
            self._take("[")
        arguments = [self.conditional()]
        while self._next() == ",":
            self._take(",")
            arguments.append(self.conditional())
        if bracket:
            self._take("]")
        self._take(")")
        function = _FUNCTIONS[name]
        if len(arguments) == 1 and name in ("min", "max"):
            return arguments[0]
        return lambda values: function(*(argument(values) for argument in arguments))


def _joined(operator: str, left: Node, right: Node) -> Node:
    if operator == "&&":
        return lambda values: float(bool(left(values)) and bool(right(values)))
    if operator == "||":
        return lambda values: float(bool(left(values)) or bool(right(values)))
    operation = _OPERATIONS[operator]
    return lambda values: operation(left(values), right(values))
