"""The command line. Thin: parse, call, print. Heavy imports wait until a command needs them."""

from __future__ import annotations

import _thread
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

#: Bytes of address space below which the libraries underneath crash while they are loaded, instead of saying so.
_LEAST_MEMORY = 2560 * 2**20
#: Seconds between being asked to end and ending in any case.
_PATIENCE = 8
#: Signals that ask a program to end: Ctrl-C, kill, and a terminal or connection that is closed.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: The exit code, once all was said; empty before.
_said: list[int] = []
#: The signal that interrupted; empty before.
_heard: list[int] = []


def _prepare_process() -> str | None:
    """What concerns the whole process: being ended politely, and little memory; a line where it cannot go on."""
    for number in _ENDING:
        # A shell may have it ignored for a command in the background, and nohup does.
        if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt_once)
    _leave_in_the_end()
    _keep_tracebacks_back()
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each of its threads reserves memory
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    if limit < _LEAST_MEMORY:
        return f"error: ulimit -v allows {limit // 2**20} MiB, and dpselect needs {_LEAST_MEMORY // 2**20}; raise it"
    return None


def _leave_in_the_end() -> None:
    """Ends the process a while after a signal asked for it, where a library ignores signals and handlers wait."""
    here, there = os.pipe()
    os.set_blocking(there, False)
    signal.set_wakeup_fd(there, warn_on_full_buffer=False)

    def wait() -> None:
        while (number := os.read(here, 1)[0]) not in _ENDING:
            pass
        time.sleep(_PATIENCE)
        if not _said:
            with suppress(OSError):
                os.write(2, b"error: interrupted\n")
        os._exit(_said[0] if _said else 128 + number)

    threading.Thread(target=wait, daemon=True).start()


def _interrupted() -> int:
    """The exit code of a command that a signal ended: 128 and the signal's number; Ctrl-C where nobody knows."""
    return 128 + (_heard[0] if _heard else signal.SIGINT)


def _interrupt_once(number: int, _: object) -> None:
    """A signal that asks to end. Held down, it would interrupt what tells of it, until Python tells in its way."""
    if not _heard:
        _heard.append(number)
        raise KeyboardInterrupt


def _keep_tracebacks_back() -> None:
    """What Python prints of its own accord, while it takes objects down and where a thread fails, may quote rows.

    It prints and forgets interruptions that come while it takes an object down: they are made once more.
    """
    hook, thread_hook = sys.unraisablehook, threading.excepthook

    def again() -> None:
        _thread.interrupt_main(signal.Signals(_heard.pop()) if _heard else signal.SIGINT)

    def heed(lost: UnraisableHookArgs) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            later = threading.Timer(0.01, again)
            later.daemon = True
            later.start()
        elif os.environ.get("DPSELECT_DEBUG"):
            hook(lost)

    def failed(thread: threading.ExceptHookArgs) -> None:
        if os.environ.get("DPSELECT_DEBUG"):
            thread_hook(thread)

    sys.unraisablehook, threading.excepthook = heed, failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``dpselect`` and return its exit code.

    0 done, 1 a fault of this program, 2 bad input (one line says what to change), 3 the budget ran out, 4 the output
    could not be written, 141 the reader of the output went away; 128 and the number of the signal that ended it: 130
    by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
    """
    if arguments is not None:
        return _run_or_leave(list(arguments))
    code = None
    try:
        if told := _prepare_process():
            print(told, file=sys.stderr)
            return 2
        code = _run_or_leave(sys.argv[1:])
        _stand_by(code)
    except KeyboardInterrupt:
        if code is None:  # before anything was asked, or while an earlier interruption was being told
            code = _say_interrupted()
        _stand_by(code)
    return code


def _stand_by(code: int) -> None:
    """The answer is out and its exit code stands: a signal while the libraries close down changes neither."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    _said.append(code)


def _run_or_leave(arguments: list[str]) -> int:
    try:
        code = _run(arguments)
        return _interrupted() if code == 128 + signal.SIGINT else code
    except KeyboardInterrupt:
        # While the modules were loading, or while an earlier interruption was being told.
        return _say_interrupted()


def _say_interrupted() -> int:
    with suppress(OSError):  # the terminal may be gone
        print("error: interrupted", file=sys.stderr)
    return _interrupted()


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
