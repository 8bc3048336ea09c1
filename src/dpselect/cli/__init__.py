"""The command line. Thin: parse, call, print. Heavy imports wait until a command needs them."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Sequence

#: Bytes of address space below which the libraries underneath crash while they are loaded, instead of saying so.
_LEAST_MEMORY = 4 * 2**30
#: Seconds between being asked to end and ending in any case.
_PATIENCE = 8


def _prepare_process() -> str | None:
    """What concerns the whole process: being ended politely, and little memory; a line where it cannot go on."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _leave_in_the_end()
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each of its threads reserves memory
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if limit < _LEAST_MEMORY:
        return f"error: ulimit -v allows {limit // 2**20} MiB, and dpselect needs {_LEAST_MEMORY // 2**20}; raise it"
    return None


def _leave_in_the_end() -> None:
    """Ends the process a while after it was asked to, where a library is deaf: Python's own handlers wait for it."""
    here, there = os.pipe()
    os.set_blocking(there, False)
    signal.set_wakeup_fd(there, warn_on_full_buffer=False)

    def wait() -> None:
        while os.read(here, 1)[0] not in (signal.SIGINT, signal.SIGTERM):
            pass
        time.sleep(_PATIENCE)
        os.write(2, b"error: interrupted\n")
        os._exit(130)

    threading.Thread(target=wait, daemon=True).start()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``dpselect`` and return its exit code.

    0 done, 1 a fault of this program, 2 bad input (one line says what to change), 3 the budget ran out, 4 the output
    could not be written, 130 interrupted, 141 the reader of the output went away.
    """
    try:
        if arguments is None and (told := _prepare_process()):
            print(told, file=sys.stderr)
            return 2
        return _run(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        # While the modules were loading, or while an earlier interruption was being told.
        print("error: interrupted", file=sys.stderr)
        return 130
    finally:
        if arguments is None:
            # The answer is out and its exit code stands: a signal while the libraries close down changes neither.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _run(arguments: list[str]) -> int:
    try:
        import cyclopts  # noqa: F401
    except ImportError as failure:
        if isinstance(failure.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        print("the command line needs cyclopts and rich; install dpselect[cli]", file=sys.stderr)
        return 2
    from dpselect.cli.failures import guarded

    return guarded(arguments)
