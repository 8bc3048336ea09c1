"""The command line. Thin: parse, call, print. Heavy imports wait until a command needs them."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``dpselect`` and return its exit code.

    0 done, 1 a fault of this program, 2 bad input (one line says what to change), 3 the budget ran out, 4 the output
    could not be written, 130 interrupted, 141 the reader of the output went away.
    """
    try:
        try:
            import cyclopts  # noqa: F401
        except ImportError as failure:
            if isinstance(failure.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            print("the command line needs cyclopts and rich; install dpselect[cli]", file=sys.stderr)
            return 2
        from dpselect.cli.failures import guarded

        return guarded(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        # While the modules were loading, or while an earlier interruption was being told.
        print("error: interrupted", file=sys.stderr)
        return 130
