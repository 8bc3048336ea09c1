"""What a ledger costs: charged questions per second beside the bare transactions of the same database, and `ask`.

    python benchmarks/ledger.py                          # SQLite, and PostgreSQL where one can be started
    python benchmarks/ledger.py --postgresql URL         # a server of yours

A charged question is two transactions: one before the data is touched, one with the answer before it is shown.
"Bare" is the rate of one row per transaction through the database's own driver, as durable and as large and
serialised in the same way; so a question by itself can come to half of it at most.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import sqlite3
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from dpselect import GaussianAboveThreshold, QueryFamily, SparseVector
from dpselect.ledger import Ledger, Total, filter_on

SECONDS = 2.0
ROW = "x" * 600


def questions(place: str, name: int) -> int:
    """Questions until the time is up."""
    with Ledger.open(place, who=f"process {name}") as ledger:
        run, done, end = secrets.token_hex(4), 0, time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            ledger.ask({"process": name, "run": run, "question": done}, cost=1e-9, draw=lambda: {"label": "2013-01-20"})
            done += 1
    return done


def bare_sqlite(place: str, name: int) -> int:
    """One row per transaction with sqlite3 itself."""
    connection = sqlite3.connect(place + ".bare", isolation_level=None, timeout=60.0)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS bare (number INTEGER PRIMARY KEY, body TEXT)")
    done, end = 0, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO bare (body) VALUES (?)", (ROW,))
        connection.execute("COMMIT")
        done += 1
    connection.close()
    return done


def bare_postgresql(place: str, name: int) -> int:
    """One row per transaction with psycopg itself, one writer at a time."""
    import psycopg

    with psycopg.connect(place, autocommit=True) as connection:
        done, end = 0, time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(1, 1)")
                connection.execute("INSERT INTO bare (body) VALUES (%s)", (ROW,))
            done += 1
    return done


def rate(work: Callable[[str, int], int], place: str, processes: int) -> float:
    """How many a second, by so many processes at once."""
    readers = []
    for name in range(processes):
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.write(writer, json.dumps(work(place, 1000 * os.getpid() + name)).encode())
            os._exit(0)
        os.close(writer)
        readers.append(reader)
    total = sum(int(os.read(reader, 64) or b"0") for reader in readers)
    for reader in readers:
        os.close(reader)
        os.wait()
    return total / SECONDS


def compare(title: str, place: str, bare: Callable[[str, int], int]) -> None:
    """One database, one process and eight, the best of three."""
    Ledger.create(place, dataset="homes", total=Total.pure(9000.0)).close()
    for processes in (1, 8):
        # In turn, so that all meet the same neighbours on the machine.
        tried = {bare: 0.0, questions: 0.0}
        for _ in range(3):
            for work in tried:
                tried[work] = max(tried[work], rate(work, place, processes))
        print(
            f"{title:11} {processes} process{'es' if processes > 1 else ''}: bare {tried[bare]:.0f}/s; questions "
            f"{tried[questions]:.0f}/s ({2 * tried[questions] / tried[bare]:.0%} of bare with as many commits)"
        )
    with Ledger.open(place) as ledger:
        started = time.perf_counter()
        found = ledger.verify()
        seconds = time.perf_counter() - started
        print(f"{title:11} verify: {found.entries:,} entries in {seconds:.2f} s, holds: {found.holds}")


def ask_through(place: str) -> None:
    """``ask`` of a sparse vector, in memory and through a ledger with stretches."""
    family = QueryFamily(lower=0, upper=1, sensitivity=1e-6)
    watcher = GaussianAboveThreshold(family, threshold=0.8, sigma_threshold=0.05, sigma_query=0.05)
    with Ledger.create(place, dataset="stream", total=Total.pure(1.0)) as ledger:
        for title, context in (
            ("in memory", contextlib.nullcontext(None)),
            ("on a ledger", filter_on(ledger, question={"verb": "watch"})),
        ):
            with context as budget:
                svt = SparseVector(watcher, budget=1.0) if budget is None else SparseVector(watcher, filter=budget)
                times = []
                for number in range(20_000):
                    value = 0.1 if number % 100 else 0.99
                    started = time.perf_counter()
                    svt.ask(value)
                    times.append(time.perf_counter() - started)
                svt.close()
            times.sort()
            print(
                f"ask {title:11}: median {1e6 * statistics.median(times):5.1f} µs, 99% {1e6 * times[-200]:6.1f} µs, "
                f"longest {1e3 * times[-1]:6.1f} ms"
            )
        print(f"the stream took {ledger.balance().anchor.number - 1} entries for 20,000 questions")


@contextlib.contextmanager
def server(given: str | None) -> Iterator[str | None]:
    """A PostgreSQL to try: the given one, or one that pgserver starts."""
    if given:
        yield given
        return
    try:
        import pgserver
    except ImportError:
        yield None
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield found.get_uri()
        finally:
            found.cleanup()


def main() -> None:
    """Everything, one after the other."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--postgresql", help="the URL of a server with an empty database")
    given = options.parse_args().postgresql
    with tempfile.TemporaryDirectory(dir=".") as folder:
        ask_through(str(Path(folder) / "stream.ledger"))
        compare("SQLite", str(Path(folder) / "homes.ledger"), bare_sqlite)
    with server(given) as url:
        if url is None:
            print("PostgreSQL  not tried: pass --postgresql URL, or install pgserver")
            return
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE bare (number BIGSERIAL PRIMARY KEY, body TEXT)")
        compare("PostgreSQL", url, bare_postgresql)


if __name__ == "__main__":
    main()
