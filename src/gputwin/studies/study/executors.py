"""Where a study runs: processes of this machine, or the workers of a Dask cluster that is already there."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager

from gputwin.core.errors import GputwinError, UserError
from gputwin.core.extras import require

PROCESSES, DASK = "processes", "dask://"
_ADDRESS = re.compile(r"[A-Za-z0-9._-]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}")
_CONNECT_SECONDS = 10
_TRIES = 10
"""Times a task may be given to another worker after one was lost."""


@contextmanager
def open_executor(name: str) -> Iterator[Executor | None]:
    """Yield the executor called `processes` (None: the batch runner's own) or `dask://host:port`."""
    if name == PROCESSES:
        yield None
        return
    address = name.removeprefix(DASK)
    if not name.startswith(DASK) or not _ADDRESS.fullmatch(address):
        raise UserError(f"unknown executor '{name}'; give {PROCESSES} or {DASK}host:port")
    distributed = require("distributed", extra="cluster")
    # Its messages about lost workers are for the cluster's own logs.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(f"tcp://{address}", timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError):
        raise UserError(f"no Dask scheduler answers at {address}; start one with: dask scheduler") from None
    try:
        with client.get_executor(pure=False, retries=_TRIES) as executor:
            try:
                yield executor
            except BaseException:
                executor.shutdown(wait=False)
                raise
    except CancelledError:
        raise GputwinError(
            f"the Dask scheduler at {address} has gone; run the study again to go on from what is finished"
        ) from None
    except distributed.KilledWorker as error:
        raise GputwinError(f"workers were lost again and again ({error}); give them more memory") from None
    finally:
        client.close(timeout=_CONNECT_SECONDS)


def workers_of(executor: Executor | None) -> int | None:
    """Return how many workers an executor of Dask's has; None where it does not say."""
    client = getattr(executor, "_client", None)
    return None if client is None else len(client.scheduler_info()["workers"])
