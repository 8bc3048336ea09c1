"""One line for whatever an engine or a server raises.

An engine's own text may quote rows, so it is shown only with ``DPSELECT_DEBUG=1``, to a curator who may see them.
Without it a failure is told by its kind: the code a server sends, or the class an engine raises.
"""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from dpselect.errors import DPSelectError, SourceError

#: What an engine stumbles on, most of the time.
BROKEN_FILE = (
    "in a file, a row with too many or too few fields, an open quote, text not in UTF-8 (iconv -f latin1 -t utf-8), "
    "a broken gzip"
)

_REFUSED = "the server refused the name or the password"
_NOT_ALLOWED = "this user may not read the table; ask for the right to SELECT it"
_TOO_LONG = "the server's time limit ended it; ask for a longer one, or for a shorter period"
_STOPPED = "somebody ended the query on the server, or a limit of its own did; ask again"
_ENDED = "the server ended the connection; see whether it runs, and ask again"
_NOBODY = "no server answers there; check the address and that it runs"
_DISK = "no space is left on the disk; make room, or point temp_directory elsewhere"
_MEMORY = "out of memory; close other programs, give DuckDB a memory_limit it can spill under, or use Spark"
_BUSY = "the server takes no more connections; ask again later"
_NO_DATABASE = "the server has no such database; check the address"

_UNKNOWN_NAME = "the table or a column of it is gone, or has another name; check the names"
#: What comes before the first row, whatever the rows are.
_BEFORE_ROWS = (_REFUSED, _NOT_ALLOWED, _NO_DATABASE, _UNKNOWN_NAME)

#: By the code PostgreSQL sends (SQLSTATE); the longest beginning that fits wins.
_POSTGRES = {
    "08": _ENDED,
    "28": _REFUSED,
    "3D": _NO_DATABASE,
    "22": "a value that the server cannot convert; name the column's type, or cast it in a view",
    "42": _UNKNOWN_NAME,
    "42501": _NOT_ALLOWED,
    "53": _BUSY,
    "53100": _DISK,
    "53200": _MEMORY,
    "57014": _TOO_LONG,
    "57P": _ENDED,
}
#: By the number MySQL and MariaDB send.
_MYSQL = {
    **dict.fromkeys((1045, 1698), _REFUSED),
    **dict.fromkeys((1044, 1142, 1143, 1227, 1370), _NOT_ALLOWED),
    **dict.fromkeys((1205, 1969, 3024), _TOO_LONG),
    1317: _STOPPED,
    **dict.fromkeys((1053, 1077, 1080, 1927, 2006, 2013, 2055), _ENDED),
    **dict.fromkeys((2002, 2003, 2005), _NOBODY),
    **dict.fromkeys((1021, 1114), _DISK),
    **dict.fromkeys((1037, 1038, 1041, 2008), _MEMORY),
    **dict.fromkeys((1040, 1203), _BUSY),
    1049: _NO_DATABASE,
    **dict.fromkeys((1051, 1054, 1146), _UNKNOWN_NAME),
}
#: By what an exception is called, for engines that send no code.
_NAMED = {
    "OutOfMemoryException": _MEMORY,
    "ArrowMemoryError": _MEMORY,
    "ConnectionTimeout": _NOBODY,
    "ConnectionRefusedError": _NOBODY,
    "gaierror": _NOBODY,
    "BrokenPipeError": _ENDED,
    "ConnectionResetError": _ENDED,
    "PermissionError": "this user may not read it; check the rights",
    "FileNotFoundError": "a file is gone; check the path",
}
#: What the system's loader says of a library that there is no memory for.
_LOADED_WITHOUT_MEMORY = ("cannot allocate memory", "failed to map segment")


class Interrupted(KeyboardInterrupt):
    """The person ended a pass; no noise was drawn for it."""


def interrupted(doing: str) -> Interrupted:
    """What to raise where a person ended a pass.

    >>> interrupted("adding up")
    Interrupted('interrupted while adding up; no noise was drawn')
    """
    return Interrupted(f"interrupted while {doing}; no noise was drawn")


@contextmanager
def engine_failures(
    doing: str, *, likely: str = BROKEN_FILE, package: str | None = None, before_rows: bool = False
) -> Iterator[None]:
    """Turns whatever an engine raises into one line, without the engine's own text.

    ``before_rows`` says that nothing inside reads a row. Some causes say so by themselves: a refused password, a
    missing right, an unknown name.
    """
    try:
        with warnings.catch_warnings():
            # What Ibis and its engines have to settle between them (calls on their way out) is theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", FutureWarning)
            yield
    except (DPSelectError, NameError) as failure:
        if before_rows and isinstance(failure, SourceError):
            failure.before_rows = True
        raise
    except ImportError as failure:
        reason = known_reason(failure)
        told = f"{doing} failed: {reason}" if reason else _not_imported(doing, failure, package)
        raise SourceError(told + _in_its_own_words(failure), before_rows=True) from None
    except Exception as failure:  # engines share no base class
        if "query interrupted" in str(failure).lower():  # DuckDB looks for signals itself, and tells of one this way
            raise interrupted(doing) from None
        reason = known_reason(failure)
        told = f"{doing} failed: {reason}" if reason else _unknown(doing, failure, likely)
        early = before_rows or reason in _BEFORE_ROWS
        raise SourceError(told + _in_its_own_words(failure), before_rows=early) from None
    except BaseException as failure:
        if type(failure).__name__ != "PanicException":  # what Polars raises in place of an error, and no Exception
            raise
        raise SourceError(_unknown(doing, failure, likely) + _in_its_own_words(failure)) from None


def _not_imported(doing: str, failure: ImportError, package: str | None) -> str:
    first = _causes(failure)[-1]
    state = "not installed" if isinstance(first, ModuleNotFoundError) else "damaged or not installed"
    return f"{doing} needs a package that is {state}: {package or getattr(first, 'name', None) or 'dpselect[tables]'}"


def _causes(failure: BaseException) -> list[BaseException]:
    """The failure and what led to it, the first last: Ibis wraps what the import of a driver raises."""
    causes = [failure]
    while isinstance(cause := causes[-1].__cause__, ImportError):
        causes.append(cause)
    return causes


def _unknown(doing: str, failure: BaseException, likely: str) -> str:
    return f"{doing} failed ({type(failure).__name__}); likely causes: {likely}"


def _in_its_own_words(failure: BaseException) -> str:
    if not os.environ.get("DPSELECT_DEBUG"):
        return ""
    from dpselect.secrets import without_secrets

    return f"; in its own words, which may hold private data: {without_secrets(' '.join(str(failure).split()))}"


def known_reason(failure: BaseException) -> str | None:
    """What to tell of a failure whose kind is known, else ``None``.

    >>> known_reason(MemoryError())
    'out of memory; close other programs, give DuckDB a memory_limit it can spill under, or use Spark'
    """
    if isinstance(failure, MemoryError):
        return _MEMORY
    if isinstance(failure, ImportError):  # only the loader's words tell a lack of memory from a missing library
        words = " ".join(str(cause) for cause in _causes(failure)).lower()
        return _MEMORY if any(sign in words for sign in _LOADED_WITHOUT_MEMORY) else None
    if isinstance(failure, OSError) and failure.errno in (errno.ENOSPC, errno.EDQUOT):
        return _DISK
    if isinstance(failure, OSError) and failure.errno == errno.ENOMEM:
        return _MEMORY
    if sqlstate := getattr(failure, "sqlstate", None):
        if sqlstate == "57014" and "timeout" not in str(failure):  # one code for a time limit and for a cancellation
            return _STOPPED
        fitting = [code for code in _POSTGRES if str(sqlstate).startswith(code)]
        return _POSTGRES[max(fitting, key=len)] if fitting else None
    module = type(failure).__module__
    if module.startswith("MySQLdb") and failure.args:
        return _MYSQL.get(failure.args[0])
    text = str(failure)
    if module.startswith("psycopg") and type(failure).__name__ == "OperationalError":
        return _postgres_without_code(text)
    if "No space left on device" in text or "max_temp_directory_size" in text:
        return _DISK
    if "std::bad_alloc" in text or "Cannot allocate memory" in text:
        return _MEMORY
    return next((_NAMED[kind.__name__] for kind in type(failure).__mro__ if kind.__name__ in _NAMED), None)


def _postgres_without_code(text: str) -> str:
    """Before a connection stands and after it broke, PostgreSQL's driver has only words."""
    if "password" in text or "authentication" in text or "role" in text:
        return _REFUSED
    if "does not exist" in text:
        return _NO_DATABASE
    if "too many" in text:
        return _BUSY
    if "closed the connection" in text or "terminating connection" in text or "is closed" in text or "is lost" in text:
        return _ENDED
    return _NOBODY
