"""Options that every verb takes, added to each in one place, and what was asked for by them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer


class As(StrEnum):
    """How a verb prints its main table."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True)
class Settings:
    """How to show results: everything (`full`), each step on stderr (`verbose`), in which form (`as_`)."""

    full: bool = False
    verbose: bool = False
    as_: str = "table"


_NONE = Settings()
_SETTINGS: ContextVar[Settings] = ContextVar("settings", default=_NONE)
_Full = Annotated[bool, typer.Option("--full", help="Print everything, however long.")]
_Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say each step on stderr, and how long it took.")]
_As = Annotated[As, typer.Option("--as", help="The main table as table, json, csv or parquet.")]
_Force = Annotated[bool, typer.Option("--force", help="Overwrite even what gputwin did not write.")]


def settings() -> Settings:
    """Return what the options of the running verb ask for."""
    return _SETTINGS.get()


def with_common_options(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return the verb with the options all verbs take."""
    own = inspect.signature(run, eval_str=True)
    common: dict[str, tuple[Any, Any]] = {"full": (_Full, False), "verbose": (_Verbose, False), "as_": (_As, As.TABLE)}
    if "output" in own.parameters:
        common["force"] = (_Force, False)
    keyword = inspect.Parameter.KEYWORD_ONLY
    extra = [inspect.Parameter(name, keyword, default=d, annotation=a) for name, (a, d) in common.items()]
    parameters = [p.replace(kind=keyword) for p in own.parameters.values()]

    @functools.wraps(run)
    def verb(**given: Any) -> Any:
        from gputwin.core.overwriting import overwriting

        asked = {name: given.pop(name) for name in common}
        made = Settings(asked["full"], asked["verbose"], str(asked["as_"]))
        token = _SETTINGS.set(made)
        try:
            with overwriting(bool(asked.get("force"))):
                return run(**given)
        finally:
            _SETTINGS.reset(token)

    verb.__signature__ = own.replace(parameters=[*parameters, *extra])  # type: ignore[attr-defined]
    verb.__annotations__ = {p.name: p.annotation for p in (*parameters, *extra)}
    return verb
