"""The `gputwin` command: its verbs, and what happens when something goes wrong."""

from __future__ import annotations

import os
import sys

import typer

from gputwin.cli import check, describe, generate, ingest, traces
from gputwin.core.errors import UserError

EXIT_FAULT, EXIT_MISTAKE, EXIT_INTERRUPTED = 1, 2, 130

app = typer.Typer(
    name="gputwin",
    help="A digital twin of a GPU cluster: read what it did, explain it, and ask what if.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.add_typer(traces.app, name="traces")
for verb in (ingest, generate, describe, check):
    app.command(verb.__name__.rpartition(".")[2])(verb.run)


def run() -> None:
    """Run the command line and exit with 0, 1 (our fault), 2 (a user's mistake) or 130 (interrupted)."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str]) -> int:
    """Return the exit code of running the command with `arguments`."""
    try:
        result = app(args=arguments, prog_name="gputwin", standalone_mode=False)
    except typer.TyperException as error:
        return _complain(_usage_line(error), EXIT_MISTAKE)
    except UserError as error:
        return _complain(str(error), EXIT_MISTAKE)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        sys.stdout = None
        return 0
    except Exception as error:
        if os.environ.get("GPUTWIN_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        return _complain(f"internal error: {what} (set GPUTWIN_DEBUG=1 for the traceback)", EXIT_FAULT)
    return result if isinstance(result, int) else 0


def _usage_line(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    help_of = f"{context.command_path} --help" if context is not None else "gputwin --help"
    return f"{' '.join(text.split())}; see: {help_of}"


def _complain(text: str, code: int) -> int:
    sys.stderr.write(f"gputwin: {text}\n")
    return code
