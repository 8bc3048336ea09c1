"""The database under a ledger: opened safely, written to by one transaction at a time, with patience that ends."""

from __future__ import annotations

import os
import random
import re
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from dpselect.checks import one, positive, refuse
from dpselect.errors import LedgerError
from dpselect.ownership import owned_here, process
from dpselect.secrets import shown, without_secrets

Result = TypeVar("Result")

#: Seconds a step waits for others, or for a database that does not answer, before it gives up; the environment
#: variable counts where no patience is given.
PATIENCE, _PATIENCE_FROM = 30.0, "DPSELECT_LEDGER_PATIENCE"
#: The first of the two numbers of this package's advisory locks in PostgreSQL.
_LOCKS = 0x6470
#: What this machine calls itself.
_HERE = ("localhost", "127.0.0.1", "::1")
#: PostgreSQL's codes for "somebody else was quicker, or it took too long; try again".
_AGAIN = {"40001", "40P01", "55P03", "57014", "53300"}
#: A login that fails like this fails however often it is tried. libpq gives no code for it, only the server's words.
_NO_LOGIN = re.compile(
    r"authentication failed|no password supplied|does not exist|not permitted to log in|no pg_hba\.conf entry"
    r"|permission denied for database|does not support SSL|certificate",
    re.IGNORECASE,
)
#: Steps between two looks at a lock that somebody else has: short, and never the same for two processes. A server that
#: does not answer is tried about once a second.
_SHORTEST_WAIT, _LONGEST_WAIT, _LONGEST_WAIT_AWAY = 0.0003, 0.02, 1.0
#: Until when the present step of this thread may wait for PostgreSQL.
_LIMIT = threading.local()


#: Said where a ledger was looked for that is not there.
HOW_TO_MAKE_ONE = (
    "if it was moved or lost, put it back; a new one is made once, with its total: dpselect ledger create LEDGER "
    "--dataset NAME --total ε"
)


class DatabaseAway(LedgerError):
    """The database is busy, does not answer or is no longer the one that was opened, whatever was to be written."""


class PatienceOver(DatabaseAway):
    """The database was busy or did not answer for as long as anybody waits."""

    waited = True


class NoLedger(LedgerError):
    """There is verifiably no ledger: no such file, or a database that answered and has none of its tables."""


class Database:
    """One SQLite file or PostgreSQL database.

    Parameters
    ----------
    place : str or path
        A file, ``sqlite:///file``, or ``postgresql://…``.
    create : bool
        Whether a file that is not there is made, readable by its owner alone. Otherwise it is refused: a ledger that
        has gone is not an empty one.
    patience : float, optional
        Seconds after which waiting for the database ends in an error, in each step; 30 if left out, or what the
        environment says in ``DPSELECT_LEDGER_PATIENCE``.
    """

    def __init__(self, place: str | Path, *, create: bool = False, patience: float | None = None) -> None:
        self._patience = one(positive, "patience", _usual_patience() if patience is None else patience)
        self._owner = _Owner()
        # Threads of one process queue here instead of polling the database.
        self._turn = threading.Lock()
        self._file: Path | None = None
        self._log = Path()
        self._inode: tuple[int, int] | None = None
        #: Whether the file, or its folder, cannot be written: then it is looked at, and nothing is charged to it.
        self.read_only = False
        url = _url(place)
        if url.get_backend_name() == "sqlite":
            self._file = Path(url.database or "").absolute()
            self._inode = _claimed(self._file, create=create)
            # Beside the file itself, not beside a link to it.
            self._log = Path(f"{self._file.resolve()}-wal")
            self.read_only = not all(os.access(one, os.W_OK) for one in (self._file, self._log.parent))
            self._engine = _sqlite(self._file, self._log, read_only=self.read_only)
        else:
            self._engine = _postgresql(url, self._patience)
        # One that nobody closed lets go of its connections (Python 3.13 warns), but never of those of a child's parent.
        weakref.finalize(self, _let_go, self._engine, self._owner).atexit = False

    def __reduce__(self) -> str:
        raise LedgerError("an open ledger is not copied or pickled; open it again where it is needed")

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self._engine.dialect.name

    def close(self) -> None:
        """Let go of the connections; a forked child has none."""
        _let_go(self._engine, self._owner)

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """What ``work`` finds in one consistent view."""
        return self._patiently(lambda _: self._once(work, writes=False, lock=0))

    def write(self, work: Callable[[Connection, int], Result], *, lock: int) -> Result:
        """Run ``work`` alone (among all who use the same ``lock``) and commit it durably.

        Where a connection breaks nobody can tell whether its last transaction was committed. ``work`` is then run again
        and told how many attempts came before, so that it can look for what it wrote.
        """
        if self.read_only:
            raise LedgerError(
                "the ledger's file or folder cannot be written here (readonly): it can be looked at, but nothing can "
                "be asked; nothing was released"
            )
        deadline = time.monotonic() + self._patience
        # Before the lock is waited for: a thread of the parent may have held it when a child was forked.
        self._check_process()
        if not self._turn.acquire(timeout=self._patience):
            raise _busy(self._patience)
        try:
            return self._patiently(
                lambda attempt: self._once(lambda found: work(found, attempt), writes=True, lock=lock), deadline
            )
        finally:
            self._turn.release()

    def _once(self, work: Callable[[Connection], Result], *, writes: bool, lock: int) -> Result:
        with self._engine.connect() as bare:
            connection = bare.execution_options(dpselect_writes=writes)
            with connection.begin():
                if writes and self.dialect == "postgresql":
                    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s, %s)", (_LOCKS, lock))
                result = work(connection)
            log = bare.info.get("log")
        # After the commit: what was written to a file that is no longer there was not written.
        self._check_file()
        if log is not None and _inode(self._log) != log:
            # Whoever opens the ledger next would start another log, and not know of what stands in this one.
            self._engine.dispose()
            raise DatabaseAway(
                "the ledger's write-ahead log (-wal) was removed or replaced while it was in use; nothing was "
                "released. Leave it beside the ledger, check the ledger with an anchor, and ask again"
            )
        return result

    def _patiently(self, attempt: Callable[[int], Result], deadline: float | None = None) -> Result:
        self._check_process()
        deadline = time.monotonic() + self._patience if deadline is None else deadline
        wait, attempts = _SHORTEST_WAIT, 0
        before = getattr(_LIMIT, "until", None)
        while True:
            self._check_file()
            try:
                _LIMIT.until = deadline
                return attempt(attempts)
            except SQLAlchemyError as problem:
                # Raised anew without the SQL, whose parameters are none of a log's business.
                refused = self._refused(problem)
                away = self._is_away(problem)
                cause = _first_line(getattr(problem, "orig", problem))
            finally:
                _LIMIT.until = before
            if refused is not None:
                raise refused
            attempts += 1
            left = deadline - time.monotonic()
            if left <= 0:
                raise _busy(self._patience, cause)
            time.sleep(min(left, random.uniform(0.5, 1.0) * wait))  # noqa: S311 (no secret: it keeps writers out of step)
            wait = min(2.0 * wait, _LONGEST_WAIT_AWAY if away else _LONGEST_WAIT)

    def _refused(self, problem: SQLAlchemyError) -> LedgerError | None:
        """The error to raise, or None where trying again may help."""
        if not isinstance(problem, DBAPIError):
            return LedgerError(f"the ledger's database cannot be used ({type(problem).__name__})")
        if self.dialect == "sqlite":
            code = getattr(problem.orig, "sqlite_errorcode", None)
            if code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                return None
        else:
            state = getattr(problem.orig, "sqlstate", None)
            if state is None and _NO_LOGIN.search(_first_line(problem.orig)):
                return LedgerError(
                    f"cannot log in to the ledger's database: {_first_line(problem.orig)}; nothing was released. Check "
                    "the user, the password and the name of the database"
                )
            if self._is_away(problem) or state in _AGAIN:
                return None
        return LedgerError(
            f"the ledger cannot be used: {_first_line(problem.orig)}; nothing was released that it does not carry"
        )

    def _is_away(self, problem: SQLAlchemyError) -> bool:
        """Whether the server did not answer, or ended the connection."""
        if self.dialect == "sqlite" or not isinstance(problem, DBAPIError):
            return False
        state = getattr(problem.orig, "sqlstate", None) or "08000"
        return problem.connection_invalidated or state.startswith(("08", "57P"))

    def _check_process(self) -> None:
        if not self._owner.here:
            raise LedgerError("this ledger was opened by another process; open it again in the forked child")

    def _check_file(self) -> None:
        """A file that was moved away or replaced still takes writes, and keeps none of them."""
        if self._file is not None and _inode(self._file) != self._inode:
            raise DatabaseAway(
                "the ledger's file was moved or replaced while it was open; nothing was released. "
                "Put the right file back, check it with an anchor, and open it again"
            )


def run(connection: Connection, statement: str, *values: Any) -> Any:
    """The driver's own cursor after a statement, in which ``?`` stands for each value.

    Quicker than by way of SQLAlchemy's statements; errors come out as they do there.
    """
    raw = connection.connection
    cursor = raw.cursor()
    if connection.dialect.name == "postgresql":
        statement = statement.replace("?", "%s")
    base: Any = getattr(connection.dialect.dbapi, "Error")  # noqa: B009 - not in the type
    try:
        cursor.execute(statement, values)
    except base as problem:
        gone = connection.dialect.is_disconnect(problem, raw, cursor)
        if gone:
            connection.invalidate()
        raise DBAPIError(statement, None, problem, hide_parameters=True, connection_invalidated=gone) from None
    return cursor


def _url(place: str | Path) -> URL:
    """The database that ``place`` names. Its text is never repeated: it may hold a password."""
    if not isinstance(place, str | Path):
        raise refuse("ledger", place, "a file or a URL such as postgresql://user@host/name")
    text = _from_environment(str(place))
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except (ArgumentError, ValueError, SQLAlchemyError):
        raise refuse("ledger", "(not shown)", "a file or a URL such as postgresql://user@host/name") from None
    if backend == "sqlite" and url.database and url.database != ":memory:":
        return url
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    raise refuse("ledger", backend, "a file, sqlite:///file or postgresql://…")


def _from_environment(place: str) -> str:
    """A place, or what the environment variable holds that stands for it (``$LEDGER_URL``)."""
    if not place.startswith("$"):
        return place
    found = os.environ.get(place[1:])
    if not found:
        raise LedgerError(f"the ledger is to be found in {shown(place)}, which is not set: export it")
    return found


def _usual_patience() -> float:
    said = os.environ.get(_PATIENCE_FROM)
    try:
        return PATIENCE if said is None else float(said)
    except ValueError:
        raise refuse(_PATIENCE_FROM, said, "a number of seconds") from None


def same_place(place: str | Path, other: str | Path) -> bool:
    """Whether two places are one database however they are written; who asks for it, and how, plays no part.

    >>> same_place("postgresql://ann@DB:5432/homes", "postgres://bob:pw@db/homes?sslmode=require")
    True
    >>> same_place("homes.ledger", "sqlite:///./homes.ledger"), same_place("homes.ledger", "postgres://db/homes")
    (True, False)
    """
    return _database(_url(place)) == _database(_url(other))


def _database(url: URL) -> tuple[object, ...]:
    if url.get_backend_name() == "sqlite":
        return (Path(url.database or "").resolve(),)
    host = str(url.host or url.query.get("host") or "localhost").lower()
    port = int(url.port or str(url.query.get("port") or 5432))
    # A name that is left out is the user's; options may choose among the schemas of one database.
    return "localhost" if host in _HERE else host, port, url.database or url.username, url.query.get("options")


def _claimed(file: Path, *, create: bool) -> tuple[int, int]:
    """Make sure that the file is there and its owner's alone; which one it is."""
    try:
        if create:
            with suppress(FileExistsError):
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600))
                folder = os.open(file.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        found = file.stat()
    except OSError as problem:
        kind = NoLedger if isinstance(problem, FileNotFoundError) else LedgerError
        hint = "" if create else f"; {HOW_TO_MAKE_ONE}"
        raise kind(f"cannot open the ledger {shown(file.name)} ({problem.strerror}){hint}") from None
    if not stat.S_ISREG(found.st_mode):
        raise LedgerError(f"cannot open the ledger {shown(file.name)} (it is not an ordinary file)")
    if found.st_nlink > 1:
        # SQLite keeps its log under the name it was given: two names are two ledgers that do not know of each other.
        raise LedgerError(f"the ledger {shown(file.name)} has a second name (a hard link); remove one of them")
    if found.st_mode & 0o077 and not os.statvfs(file).f_flag & os.ST_RDONLY:
        raise LedgerError(f"the ledger {shown(file.name)} is open to other users; run: chmod 600 {file.name}")
    return found.st_dev, found.st_ino


class _Owner:
    """The process that opened a database. It outlives the database, to say whose connections are let go of."""

    def __init__(self) -> None:
        self._process = owned_here(self)

    @property
    def here(self) -> bool:
        """Whether this is that process, and no child of it whatever its number."""
        return self._process == process()


def _let_go(engine: Engine, owner: _Owner) -> None:
    if owner.here:
        engine.dispose()


def _inode(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _sqlite(file: Path, log: Path, *, read_only: bool) -> Engine:
    def look() -> sqlite3.Connection:
        """Where nothing can be written, SQLite cannot make its log; without one the file is all there is."""
        alone = not (log.exists() and log.stat().st_size)
        return sqlite3.connect(
            f"file:{quote(str(file))}?mode=ro{'&immutable=1' if alone else ''}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )

    def connect() -> sqlite3.Connection:
        # mode=rw: a file that has gone is an error, never a new and empty ledger.
        found = sqlite3.connect(
            f"file:{quote(str(file))}?mode=rw", uri=True, timeout=0.0, isolation_level=None, check_same_thread=False
        )
        try:
            # Set before the first statement: opening a file right after a crash may have to wait for its recovery.
            found.execute("PRAGMA busy_timeout = 1000")
            mode = found.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            found.execute("PRAGMA synchronous = FULL")
            found.execute("PRAGMA foreign_keys = ON")
            # The first look opens the log, whose place is then known.
            found.execute("SELECT count(*) FROM sqlite_master").fetchone()
            found.execute("PRAGMA busy_timeout = 0")
            if mode != "wal":
                raise sqlite3.NotSupportedError(
                    "no write-ahead log on this file system; put the ledger on a local disk"
                )
        except BaseException:
            found.close()
            raise
        return found

    engine = create_engine(
        "sqlite://", creator=look if read_only else connect, poolclass=QueuePool, pool_size=1, max_overflow=8
    )

    @event.listens_for(engine, "connect")
    def connected(_: object, record: Any) -> None:
        record.info["log"] = None if read_only else _inode(log)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("dpselect_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql(url: URL, patience: float) -> Engine:
    milliseconds = max(1, int(1000 * patience))
    # What a URL says itself counts more. A silent network is noticed by either side within the patience.
    quiet = {
        "keepalives": 1,
        "keepalives_idle": max(1, int(patience / 2)),
        "keepalives_interval": max(1, int(patience / 6)),
        "keepalives_count": 3,
        "tcp_user_timeout": milliseconds,
    }
    try:
        import psycopg

        engine = create_engine(
            url,
            pool_size=1,
            max_overflow=8,
            hide_parameters=True,
            isolation_level="READ COMMITTED",
            connect_args={name: value for name, value in quiet.items() if name not in url.query},
        )
    except ImportError:
        raise LedgerError("PostgreSQL needs psycopg; run: pip install 'dpselect[ledger]'") from None

    class Punctual(psycopg.Connection[Any]):
        """A connection on which no wait outlasts the limit of the step, whatever the server or the network does.

        The server's own limits do not help where the server is stopped, nor does TCP where its machine still answers.
        """

        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            until = getattr(_LIMIT, "until", None)
            if until is None:
                return super().wait(gen, *args, **options)
            try:
                return super().wait(_until(gen, until), *args, **options)
            except TimeoutError:
                self.pgconn.finish()  # what is under way there is not waited for
                raise psycopg.OperationalError("the server did not answer in time") from None

    @event.listens_for(engine, "do_connect")
    def connect(_: object, __: object, arguments: Any, options: Any) -> Any:
        left = getattr(_LIMIT, "until", None)
        left = patience if left is None else left - time.monotonic()
        # No less than 2 s, which is the least that libpq takes.
        return Punctual.connect(*arguments, **{"connect_timeout": max(2, int(left)), **options})

    @event.listens_for(engine, "connect")
    def connected(raw: Any, _: object) -> None:
        raw.autocommit = True
        with raw.cursor() as cursor:
            # A server may be set to answer before a commit is on disk; a ledger may not.
            cursor.execute("SET synchronous_commit TO on")
            # A client that was stopped in the middle of a step must not keep the others waiting for good.
            for name in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
                cursor.execute(f"SET {name} TO {milliseconds}")
        raw.autocommit = False

    return engine


def _until(steps: Generator[Any, Any, Any], until: float) -> Generator[Any, Any, Any]:
    """The same steps of a conversation with the server; ``TimeoutError`` where they take too long."""
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if time.monotonic() > until:
                raise TimeoutError
            wanted = steps.send(ready)
    except StopIteration as end:
        return end.value


def _busy(patience: float, cause: str = "") -> PatienceOver:
    last = f" (the last try: {cause})" if cause else ""
    return PatienceOver(
        f"the ledger's database is busy or does not answer{last}, and {patience:g} s of patience are over; nothing was "
        "released. Try again: a question that was charged is not charged twice"
    )


def _first_line(problem: BaseException | None) -> str:
    return without_secrets(str(problem).strip().split("\n")[0])
