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
    # DuckDB keeps count only with its bar switched on; its own printing stays off.
    before = {} if ask is None else _set(connection, enable_progress_bar=True, enable_progress_bar_print=False)
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
        _set(connection, **before)  # the connection may be the user's: it is left as it was found
    progress(1.0)


def _set(connection: Any, **wanted: bool) -> dict[str, bool]:
    """Changes settings of a DuckDB connection, and says what they were."""
    before = {}
    for name, value in wanted.items():
        (before[name],) = connection.execute(f"SELECT current_setting('{name}')").fetchone()
        connection.execute(f"SET {name} = {str(value).lower()}")
    return before
