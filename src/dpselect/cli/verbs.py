"""Every command in one place: its name, its line of help, whether it spends, and what is said where it fails.

A command is a module and a function (or a group of commands) of its name in this folder, and an entry here. Whatever
ends a command that spends (a refusal, a signal, a full disk, a fault) tells what it may have cost; the command itself
only calls :func:`dpselect.cli.spent.begin` before its budget is charged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Verb:
    """A command.

    Attributes
    ----------
    line : str
        Its line of help: the first sentence of its function's docstring.
    spends : bool
        Whether it draws answers from private data, unless it is asked for a dry run.
    meant : mapping
        Options of other commands that people type here, and what is meant.
    lost : str
        What to say where its output could not be written and an answer may have been drawn.
    group : bool
        Whether it has commands of its own, of which one must be named.
    """

    line: str
    spends: bool = False
    meant: Mapping[str, str] = field(default_factory=dict)
    lost: str = "the answer may have been drawn: count its cost as spent"
    group: bool = False


#: Each command by its name, in the order in which help lists them. A module is loaded when it is run.
VERBS: dict[str, Verb] = {
    "demo": Verb("Simulate a city of meters over a year, ask for its peak and its cold days, write a report."),
    "describe": Verb(
        "Look at a table before anything is spent: what can be read, what looks wrong, and which option fixes it."
    ),
    "peak": Verb(
        "Which day (hour, week, month, category) is largest?",
        spends=True,
        meant={"--budget": "--epsilon"},
    ),
    "watch": Verb(
        "On which days (hours, …) is the line crossed? Asked in order, within a budget.",
        spends=True,
        meant={"--epsilon": "--budget"},
        lost="answers may have been drawn: count their cost as spent",
    ),
    "epsilon": Verb("What a release costs, as an upper bound on ε."),
    "calibrate": Verb("The least noise with which a release costs at most ε."),
    "plan": Verb(
        "Which mechanism, how much noise, what accuracy: every way tuned and ranked, on public knowledge only."
    ),
    "ledger": Verb("The ledger that keeps a data set's budget: make it, look at it, check it.", group=True),
    "paper": Verb("Recompute the paper's figures and judge its claims, on one page."),
}


def spends(arguments: Sequence[str]) -> bool:
    """Whether these arguments spend on private data.

    >>> spends(["peak", "homes.toml"]), spends(["peak", "homes.toml", "--dry-run"]), spends(["plan"]), spends([])
    (True, False, False, False)
    """
    verb = VERBS.get(arguments[0]) if arguments else None
    return verb is not None and verb.spends and "--dry-run" not in arguments
