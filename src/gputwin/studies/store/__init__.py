"""The run store: finished runs by what they are made of, so that the same scenario never runs twice."""

from gputwin.studies.store.index import Execution, StoredRun
from gputwin.studies.store.keys import engine_digest, run_key
from gputwin.studies.store.store import RunStore

__all__ = ["Execution", "RunStore", "StoredRun", "engine_digest", "run_key"]
