"""Options that every verb takes, added to each in one place, and what was asked for by them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
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
_AS_HELP = "The main table as table, json, csv or parquet."
_As = Annotated[As, typer.Option("--as", help=_AS_HELP)]
_AsFormat = Annotated[As, typer.Option("--as", "--format", help=_AS_HELP)]
_OutputFile = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to a file: .json, .csv, .parquet or .txt.")
]
_Force = Annotated[bool, typer.Option("--force", help="Overwrite even what gputwin did not write.")]


def settings() -> Settings:
    """Return what the options of the running verb ask for."""
    return _SETTINGS.get()


@contextmanager
def _destination(own: inspect.Signature, verb: str, given: dict[str, Any], asked: dict[str, Any]) -> Iterator[str]:
    """Yield the form in which the verb prints; a file named by -o gets it, or the report, and `given` says so."""
    from gputwin.cli.output_file import (
        FOLDER_ONLY,
        REPORT,
        check_folder,
        check_replaceable_file,
        is_file_name,
        printed_to,
        refuse_file_name,
        report_to,
    )

    form = str(asked["as_"])
    path = asked.get("output_file") or given.get("output")
    if isinstance(path, Path) and _writes_a_file(own) and path.suffix.lower() != REPORT:
        # A report knows those of its own kind and replaces no other.
        check_replaceable_file(path)
    if not isinstance(path, Path) or _writes_a_file(own) or not (asked.get("output_file") or is_file_name(path)):
        if isinstance(path, Path):
            check_folder(verb, path)
        yield form
        return
    if verb in FOLDER_ONLY:
        refuse_file_name(verb, path)
    if "output" in own.parameters:
        given["output"] = None
    if path.suffix.lower() == REPORT and "output" in own.parameters:
        with report_to(path) as folder:
            given["output"] = folder
            yield form
    else:
        with printed_to(path) as form:
            yield form


def _writes_a_file(own: inspect.Signature) -> bool:
    """Return whether the verb's own -o is a file, which it writes itself."""
    output = own.parameters.get("output")
    options = getattr(output.annotation, "__metadata__", ()) if output else ()
    return any(str(getattr(option, "metavar", "")).startswith("FILE") for option in options)


def with_common_options(run: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the verb of this name with the options all verbs take."""
    own = inspect.signature(run, eval_str=True)
    has_format = "format" in own.parameters
    common: dict[str, tuple[Any, Any]] = {"full": (_Full, False), "verbose": (_Verbose, False)}
    common |= {"as_": (_As if has_format else _AsFormat, As.TABLE), "force": (_Force, False)}
    if "output" not in own.parameters:
        common["output_file"] = (_OutputFile, None)
    keyword = inspect.Parameter.KEYWORD_ONLY
    extra = [inspect.Parameter(option, keyword, default=d, annotation=a) for option, (a, d) in common.items()]
    parameters = [p.replace(kind=keyword) for p in own.parameters.values()]

    @functools.wraps(run)
    def verb(**given: Any) -> Any:
        from gputwin.core.overwriting import overwriting

        asked = {option: given.pop(option) for option in common}
        if has_format and given["format"] in tuple(As):
            # No raw input is of a format with such a name: what is printed is meant.
            asked["as_"] = As(given["format"])
            given["format"] = None
        with overwriting(bool(asked["force"])), _destination(own, name, given, asked) as form:
            token = _SETTINGS.set(Settings(asked["full"], asked["verbose"], form))
            try:
                return run(**given)
            finally:
                _SETTINGS.reset(token)

    verb.__signature__ = own.replace(parameters=[*parameters, *extra])  # type: ignore[attr-defined]
    verb.__annotations__ = {p.name: p.annotation for p in (*parameters, *extra)}
    return verb
