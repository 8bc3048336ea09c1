"""Who may use a budget or secret noise: the process that made it, and no forked child."""

from __future__ import annotations

import os
import weakref
from typing import Any

#: Names this process. Whoever holds noise or a budget remembers the number and compares it before each use. It is read
#: anew each time: a ``fork()`` called from C, as pre-forking servers do, runs no Python code in the child.
process = os.getpid

#: Whoever holds a budget, or stretches randomness, for as long as it lives.
_owners: weakref.WeakSet[Any] = weakref.WeakSet()
_NOBODY = -1


def owned_here(owner: Any) -> int:
    """:func:`process`, for ``owner`` to keep as ``_process``.

    The number alone does not tell a child from its parent where the child has a process namespace of its own, as in
    containers: both can be number 1. A child forked by Python therefore takes all owners' numbers away before anything
    else runs in it, which costs those who compare them nothing.
    """
    _owners.add(owner)
    return process()


def _in_child() -> None:
    for owner in list(_owners):
        owner._process = _NOBODY


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
