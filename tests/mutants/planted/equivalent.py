# ruff: noqa: E501
"""Changes that no test can notice, since nothing changes: each with the argument, and the fault that stands for it."""

from __future__ import annotations

from tests.mutants.fault import Fault, fault

RATIONED = "tests/composition/test_rationed_runs.py::test_a_question_without_a_price_of_its_own_is_not_put"

EQUIVALENT: list[tuple[Fault, str]] = [
    (
        fault(
            "a rationed question is put at an earlier price",
            "composition/ration.py",
            "if offer is None or offer[0] is not counts:",
            "if offer is None:",
            RATIONED,
        ),
        "An offer is made for the counts (b, a) in the same step in which the ladder is, and the reach that follows is "
        "(b, a), or older where a question came in between. Counts only grow, and by one answer at a time. So where the "
        "offer is older than the counts, one of them is beyond the reach, and the last look in _in_service refuses with "
        "the same words. Without that look as well, answers are given at a stale price: that is planted below.",
    ),
    (
        fault(
            "writers on SQLite do not wait for each other",
            "ledger/database.py",
            '"BEGIN IMMEDIATE" if writes else "BEGIN"',
            '"BEGIN"',
            "tests/ledger/test_many_processes.py",
        ),
        "Every step reads the last entry first, so a deferred transaction has its snapshot before it writes. If anybody "
        "has committed since, SQLite refuses the write with SQLITE_BUSY_SNAPSHOT; the low byte of that code is "
        "SQLITE_BUSY, on which Database._patiently runs the whole step again from a new snapshot. So the same steps are "
        "committed, one after the other, and only the waiting is dearer.",
    ),
]

#: The same with the second lock open, too.
FAULTS = [
    fault(
        "a rationed question is put at an earlier price, without a last look at the room",
        "composition/ration.py",
        "if offer is None or offer[0] is not counts:",
        "if offer is None:",
        RATIONED,
        also=(
            (
                "mechanisms/run.py",
                "if below + questions - 1 > reach.below or above + tops - 1 > reach.above:",
                "if False:",
            ),
        ),
    ),
]
