"""The `gputwin` command: its verbs, and what happens when something goes wrong."""

from __future__ import annotations

import gc
import os
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from gputwin.cli import (
    analyze,
    autoscale,
    bench,
    check,
    compile,
    demo,
    describe,
    eta,
    explain,
    fit,
    forecast,
    generate,
    ingest,
    interference,
    merge,
    mig,
    place,
    plan,
    policies,
    predict,
    profile,
    queueing,
    report,
    reproduce,
    reproduce_all,
    reproduce_comparison,
    reproduce_schedulers,
    reproduce_sharing,
    runs,
    serve,
    simulate,
    slice,
    split,
    study,
    traces,
    tune,
)
from gputwin.cli.interrupt import EXIT_INTERRUPTED, INTERRUPTED, leave_now, leave_promptly
from gputwin.cli.settings import with_common_options
from gputwin.core.errors import UserError, shorten

EXIT_FAULT, EXIT_MISTAKE = 1, 2

app = typer.Typer(
    name="gputwin",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from gputwin import __version__

        typer.echo(f"gputwin {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A digital twin of a GPU cluster: read what it did, explain it, and ask what if."""


app.add_typer(traces.app, name="traces")
reproduce_schedulers.add_to(reproduce.app)
reproduce_sharing.add_to(reproduce.app)
reproduce_comparison.add_to(reproduce.app)
reproduce_all.add_to(reproduce.app)
app.add_typer(reproduce.app, name="reproduce")
app.add_typer(runs.app, name="runs")
for verb in (
    ingest,
    generate,
    describe,
    slice,
    split,
    merge,
    analyze,
    check,
    simulate,
    explain,
    policies,
    profile,
    predict,
    eta,
    forecast,
    queueing,
    plan,
    autoscale,
    place,
    fit,
    mig,
    interference,
    tune,
    study,
    report,
    serve,
    demo,
    compile,
    bench,
):
    name = verb.__name__.rpartition(".")[2]
    app.command(name)(with_common_options(verb.run, name))
for group in (traces.app, reproduce.app, runs.app):
    for command in group.registered_commands:
        if command.callback is not None:
            command.callback = with_common_options(command.callback, str(command.name))


def run() -> None:
    """Run the command line and exit with 0, 1 (our fault), 2 (a user's mistake), 3 (no plan) or 130 (interrupted)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A dash that an old terminal does not have is no reason to fail.
            stream.reconfigure(errors="replace")
    # Starting makes many objects that last and few that go in circles: looking for those as often as Python does by default
    # is a fifth of the time it takes.
    gc.set_threshold(200_000, 20, 20)
    leave_promptly()
    code = main(sys.argv[1:])
    if code == EXIT_INTERRUPTED:
        leave_now()
    sys.exit(code)


def main(arguments: list[str]) -> int:
    """Return the exit code of running the command with `arguments`."""
    try:
        # Asking for nothing is asking for help.
        result = app(args=arguments or ["--help"], prog_name="gputwin", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _complain(_usage_line(error), EXIT_MISTAKE)
    except UserError as error:
        return _complain(str(error), EXIT_MISTAKE)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        sys.stdout = None
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        remedy = "check the path, its permissions and the space on the disk"
        return _complain(f"{where}{error.strerror or error}; {remedy}", EXIT_MISTAKE)
    except BaseException as error:
        # Polars' PanicException, a fault in its compiled code, is no Exception.
        if INTERRUPTED.is_set():
            return _complain("interrupted", EXIT_INTERRUPTED)
        is_fault = isinstance(error, Exception) or type(error).__name__ == "PanicException"
        if not is_fault or os.environ.get("GPUTWIN_DEBUG"):
            raise
        what = shorten(" ".join(f"{type(error).__name__}: {error}".split()), 300)
        return _complain(f"internal error: {what} (set GPUTWIN_DEBUG=1 for the traceback)", EXIT_FAULT)
    if result == EXIT_INTERRUPTED:
        # Typer turns an interrupt into this.
        return _complain("interrupted", EXIT_INTERRUPTED)
    return result if isinstance(result, int) else 0


def _usage_line(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    help_of = f"{context.command_path} --help" if context is not None else "gputwin --help"
    return f"{' '.join(text.split()).rstrip('.')}; see: {help_of}"


def _complain(text: str, code: int) -> int:
    """Return `code` after saying `text` on stderr in one line, whatever a file's name or cell has put into it."""
    line = "".join(c if c.isprintable() else "�" for c in " ".join(text.split()))
    sys.stderr.write(f"gputwin: {line}\n")
    return code
