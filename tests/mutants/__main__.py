"""Apply each fault to a copy of the package, run the tests named with it, and report what survives.

python -m tests.mutants              # all of them
python -m tests.mutants --quick      # the most telling dozen
python -m tests.mutants clip delta   # those with a word in their name
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.mutants.faults import FAULTS
from tests.mutants.trial import try_all


def main() -> int:
    """Print one line per fault; 1 where one survives or cannot be tried."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*", help="only faults with one of these words in their name")
    parser.add_argument("--quick", action="store_true", help="only the most telling ones")
    parser.add_argument("--workers", type=int, default=2, help="how many at a time")
    chosen = parser.parse_args()
    wanted = [fault for fault in FAULTS if not chosen.quick or fault.quick]
    if chosen.words:
        wanted = [fault for fault in wanted if any(word in fault.name for word in chosen.words)]
    start, bad = time.perf_counter(), 0
    for outcome in try_all(wanted, workers=chosen.workers):
        bad += not outcome.killed
        sys.stdout.write(f"{outcome}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(wanted)} faults, {bad} not noticed, {time.perf_counter() - start:.0f} s\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
