"""A call that is interrupted at a chosen line, for tests of what must hold wherever it stops."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class Interrupted(Exception):
    """Raised by nobody else."""


def interrupted(
    call: Callable[[], Any], *, at: int, within: str | tuple[str, ...], by: type[BaseException] = Interrupted
) -> bool:
    """Raise at the ``at``-th line that the call executes in files whose path begins so; False where it ended first."""
    seen = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal seen
        if not frame.f_code.co_filename.startswith(within):
            return None
        if event == "line":
            seen += 1
            if seen == at:
                raise by
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except by:
        assert seen >= at
        return True
    finally:
        sys.settrace(before)
    return False
