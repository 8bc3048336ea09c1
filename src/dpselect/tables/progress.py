"""How far a query has come, where the engine tells."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

#: Called with the share of the work done, from 0 to 1.
Progress: TypeAlias = Callable[[float], None]


@contextmanager
def watched(table: Any, progress: Progress | None, *, seconds: float = 0.2) -> Iterator[None]:
    """Reports on the query that runs inside, every ``seconds``; 0, then 1, where the engine tells nothing."""
    if progress is None:
        yield
        return
    connection: Any = getattr(table.get_backend(), "con", None)
    ask = getattr(connection, "query_progress", None)
    if ask is not None:
        # DuckDB keeps count only with its bar switched on; its own printing stays off.
        connection.execute("SET enable_progress_bar = true")
        connection.execute("SET enable_progress_bar_print = false")
    done = threading.Event()

    def look() -> None:
        while ask is not None and not done.wait(seconds):
            share = float(ask())
            if 0 <= share <= 100:
                progress(share / 100)

    progress(0.0)
    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    progress(1.0)
