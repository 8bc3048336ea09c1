"""The command line. Thin: parse, call, print. Heavy imports wait until a command needs them."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``dpselect`` and return its exit code.

    0 done, 1 a fault of this program, 2 bad input (one line says what to change), 3 the budget ran out.
    """
    try:
        import typer  # noqa: F401
    except ImportError:
        print("the command line needs typer and rich; install dpselect[cli]", file=sys.stderr)
        return 2
    from dpselect.cli.failures import guarded

    return guarded(list(sys.argv[1:] if arguments is None else arguments))
