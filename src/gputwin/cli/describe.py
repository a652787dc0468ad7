"""`gputwin describe`: what is in a trace."""

from __future__ import annotations

from gputwin.cli.console import Format, Json, Quiet, emit, progress
from gputwin.cli.options import TraceArgument
from gputwin.cli.show import show_description


def run(
    trace: TraceArgument,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what is in a trace.

    Examples:

        gputwin describe dlrm

        gputwin describe "synthetic:pai2020?jobs=100000" --json
    """
    from gputwin.cli.serving import serving_of, show_serving
    from gputwin.traces.describe import describe
    from gputwin.traces.locate import open_trace

    with progress(quiet or json) as step:
        opened = open_trace(trace, format, step)
        description = describe(opened)
        served = serving_of(opened)

    def render() -> None:
        show_description(description)
        show_serving(served)

    emit({**description.to_json(), "serving": served}, json, render)
