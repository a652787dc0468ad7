"""What a trace shows: pure functions from canonical tables to small frames, and what they say in words.

Functions take any lazy frame narwhals knows (Polars, DuckDB, Spark) with the canonical columns, aggregate there, and
return a small Polars frame.
"""

from gputwin.analysis.analyze import Analysis, analyze
from gputwin.analysis.tasks import prepare, task_facts
from gputwin.analysis.topic import Remark, Topic

__all__ = ["Analysis", "Remark", "Topic", "analyze", "prepare", "task_facts"]
