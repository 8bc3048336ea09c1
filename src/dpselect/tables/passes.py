"""A pass over a table: run it, read it another way where an engine gives up, tell how far it is, end it when told."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from dpselect.errors import SourceError
from dpselect.tables.failures import BROKEN_FILE, engine_failures, interrupted
from dpselect.tables.parts import Expression

#: The attribute of a connection with its files' needs.
_FILES = "dpselect_files"
#: What DuckDB raises where pieces of a file do not fit together, and DuckDB and Polars where they cannot hold a value
#: of a Parquet file; also for files that are broken.
_GIVEN_UP = ("InvalidInputException", "NotImplementedException", "ConversionException", "ComputeError")


@dataclass
class Files:
    """What the files under a connection need besides their engine; nothing where it has none of ours."""

    #: Looks at the files before the first pass: opening them reads no rows.
    look_first: Callable[[], None] | None = None
    #: Has the files read another way, where an engine gave up. CSV: each file in one piece. DuckDB's many readers start
    #: in the middle of a file, and have to guess whether that lies inside quotes. They never read a file wrongly: where
    #: the pieces do not fit together, they give up. Parquet: through Arrow, without values that an engine cannot hold.
    read_otherwise: Callable[[], object] | None = None
    #: Finds the first row that does not fit, after a pass that failed.
    find_misfit: Callable[[], str | None] | None = None
    #: Turns wide files long, given the person's column and the others' numbers.
    turn_long: Callable[[str, Mapping[str, int]], Any] | None = None
    #: How tables are made that wait for the first expression that names them.
    waiting: dict[str, Callable[[], object]] | None = None


def files_under(connection: Any) -> Files:
    """The files' needs, kept with the connection."""
    found: Files | None = getattr(connection, _FILES, None)
    if found is None:
        found = Files()
        setattr(connection, _FILES, found)
    return found


def fetched(expression: Expression, *, doing: str) -> Any:
    """The rows of an expression, as an Arrow table."""
    with engine_failures(doing):
        backend = expression.get_backend()
        files = files_under(backend)
        try:
            if files.look_first is not None:
                files.look_first()
                files.look_first = None
            return _interruptible(backend, lambda: _run(backend, expression))
        except KeyboardInterrupt:
            raise interrupted(doing) from None
        except Exception as failure:
            again = files.read_otherwise
            if again is None or type(failure).__name__ not in _GIVEN_UP:
                _refuse_misfit(files, doing)
                raise
            files.read_otherwise = None
            try:
                again()
                return _run(backend, expression)
            except Exception:
                _refuse_misfit(files, doing)
                raise


def _refuse_misfit(files: Files, doing: str) -> None:
    """Names the line, where a row that does not fit can be found; the engine's own words might quote it."""
    if files.find_misfit is not None and (where := files.find_misfit()) is not None:
        raise SourceError(f"{doing} failed: {where} is the first that does not fit; likely {BROKEN_FILE}") from None


def _run(backend: Any, expression: Expression) -> Any:
    """The result in Arrow's types. Ibis's own way would load pandas first, which takes longer than many a pass."""
    relation = getattr(backend, "_to_duckdb_relation", None)
    return expression.to_pyarrow() if relation is None else relation(expression).to_arrow_table()


def make_on_demand(connection: Any, name: str, make: Callable[[], object]) -> None:
    """Notes how a table of a connection is made, for the first expression that names it."""
    files = files_under(connection)
    if files.waiting is None:
        waiting = files.waiting = {}
        before = connection._run_pre_execute_hooks

        def first(expression: Expression) -> None:
            import ibis.expr.operations as ops

            named = {table.name for table in expression.op().find(ops.DatabaseTable)}
            written = [query.query for query in expression.op().find(ops.SQLQueryResult)]
            for name in [one for one in waiting if one in named or any(one in query for query in written)]:
                waiting[name]()
                del waiting[name]
            before(expression)

        connection._run_pre_execute_hooks = first
    files.waiting[name] = make


def _interruptible(backend: Any, run: Callable[[], Any]) -> Any:
    """Runs MySQL's queries in a thread of their own: its driver ignores signals while it waits."""
    if backend.name == "sqlite":
        with _ended_by_signals(backend.con.interrupt):
            return run()
    if backend.name != "mysql":
        return run()
    found: list[Any] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(run())
        except BaseException as failure:
            failed.append(failure)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(0.1)
    except KeyboardInterrupt:
        _kill_query(backend)
        worker.join(5)
        raise
    if failed:
        raise failed[0]
    return found[0]


@contextmanager
def _ended_by_signals(end: Callable[[], None]) -> Iterator[None]:
    """Ends what runs inside when a person interrupts.

    SQLite calls functions of Python's for each row, and takes an interruption in one of them for a failure of it.
    """
    heard: list[signal.Signals] = []

    def hear(number: int, _: object) -> None:
        heard.append(signal.Signals(number))
        end()

    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if callable(signal.getsignal(number)):
                before[number] = signal.signal(number, hear)
    try:
        yield
    except Exception:
        if not heard:
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if heard:
        before[heard[0]](heard[0], None)  # which raises, as a rule
        raise KeyboardInterrupt


def _kill_query(backend: Any) -> None:
    with suppress(Exception):  # the server may be gone; the person wants to leave in any case
        import MySQLdb

        helper = MySQLdb.connect(**backend._con_kwargs)
        try:
            helper.cursor().execute(f"KILL QUERY {int(backend.con.thread_id())}")
        finally:
            helper.close()


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

    watcher = threading.Thread(target=look, daemon=True)
    try:
        progress(0.0)
        watcher.start()
        yield
    finally:
        done.set()
        if watcher.ident is not None:
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
