"""flint's working precision: one setting for the whole process, so it is changed under one lock and put back."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Lock:
    """The lock; a child process gets a fresh one, since the thread that held it may not exist there."""

    def __init__(self) -> None:
        self.renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self.held = threading.RLock()


_LOCK = _Lock()


@contextmanager
def working_precision(bits: int | None = None) -> Iterator[None]:
    """Holds flint's precision for this thread's work, at ``bits`` if given; afterwards it is what it was.

    >>> from flint import ctx
    >>> before = ctx.prec
    >>> with working_precision(200):
    ...     ctx.prec
    200
    >>> ctx.prec == before
    True
    """
    from flint import ctx

    with _LOCK.held:
        before = ctx.prec
        try:
            if bits is not None:
                ctx.prec = bits
            yield
        finally:
            ctx.prec = before
