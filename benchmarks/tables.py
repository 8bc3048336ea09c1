"""How fast and how large: tables to a private answer, beside the same file in bare SQL. One command, one small table.

    python benchmarks/tables.py                 # full size: about four minutes on two quiet cores, 2.5 GB of disk
    python benchmarks/tables.py --scale 0.01    # a hundredth of the rows

* 167 million half-hourly readings in Parquet, and 2 GB of them in CSV. Meters join over the first 407 days, as in a
  real roll-out, so that 5,564 meters × 829 days × 48 half hours hold 167 million readings rather than 221 million;
* ten million persons in twenty million rows, with a memory limit of 2 GiB;
* wide CSV files of 10,000 and of 100,000 columns, a hundred rows each.

Of the readings there are three ways over the same file, each in a process of its own with the same threads and memory
limit, taking turns: ours (``bounded_query``, per meter and day cut and rounded to whole steps, then per day, and a
noisy maximum); the same shape in bare SQL (``GROUP BY`` meter and day, then day: floating-point sums, nothing checked);
and one plain ``GROUP BY`` day, which no longer knows whose reading is whose, and so can bound nothing.

For CSV the bare queries parse times and numbers too: DuckDB finds out the types from the rows (timestamp and double),
and its reader gives them typed, taking whatever it can read. Ours takes nothing but text, has DuckDB read it, and makes
sure of each cell that it is written as the contract says. Of some 340 ns for a row (215 for the bare query), writing
the time again to compare it takes 50 and the pattern of a number 50. Other proofs that DuckDB offers (LIKE, GLOB, other
patterns, comparing dates and clocks apart) take as long or longer.

The best time of several counts, and its processor time, which other programs on the machine change less; the worst
memory counts.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

METERS, DAYS, JOINING = 5_564, 829, 407
FIRST, LAST = "2011-11-23", "2014-02-28"
PERSONS = 10_000_000
WIDE = (10_000, 100_000)
MEMORY_LIMIT = "2500MiB"
THREADS = 2
#: The share of the readings that makes 2 GB of CSV.
CSV_SHARE = 0.335
#: What is aimed at, at most: a ratio to the bare query, GiB, seconds. CSV is short of the engine's own speed (a ratio
#: of 1) by what checking texts costs; its ratio is told, and decides nothing.
TARGETS = {"parquet": ("ratio", 1.3), "persons": ("gib", 3.0), "wide": ("seconds", 10.0)}


def show(share: float, doing: str) -> None:
    """A progress bar on one line of standard error."""
    bar = "#" * round(30 * share)
    print(f"\r{doing:<28}[{bar:<30}] {share:4.0%}", end="\n" if share >= 1 else "", file=sys.stderr, flush=True)


def run_with_progress(connection: Any, sql: str, doing: str) -> Any:
    """Runs SQL on a DuckDB connection while a thread shows how far it is."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            show(max(0.0, min(0.99, connection.query_progress() / 100)), doing)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        return connection.execute(sql).fetchall()
    finally:
        done.set()
        watcher.join()
        show(1.0, doing)


def settings(folder: Path, limit: str = MEMORY_LIMIT) -> dict[str, Any]:
    """The benchmark's limits."""
    return {"memory_limit": limit, "threads": THREADS, "temp_directory": str(folder / "spill")}


def connect(folder: Path) -> Any:
    """DuckDB with these limits."""
    import duckdb

    connection = duckdb.connect(config=settings(folder))
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")
    return connection


def write(folder: Path, name: str, query: str, how: str) -> Path:
    """What a query gives, as a file; one that is there already is kept."""
    path = folder / name
    if not path.exists():
        unfinished = path.with_suffix(".part")
        with connect(folder) as connection:
            run_with_progress(connection, f"COPY ({query}) TO '{unfinished}' ({how})", f"writing {path.suffix[1:]}")
        unfinished.rename(path)
    return path


def readings(folder: Path, meters: int) -> Path:
    """Meter, time and kWh, meters one after the other."""
    slots = DAYS * 48
    query = f"""
        SELECT 'MAC' || lpad((i // {slots})::VARCHAR, 6, '0') AS meter,
               make_timestamp(epoch_us(TIMESTAMP '{FIRST}') + (i % {slots}) * 1800000000) AS half_hour,
               round(0.05 + 0.4 * pow((hash(i) % 10000) / 10000.0, 4)
                     + 0.1 * sin((i % 48) / 7.6) ** 2 + (i // {slots} % 17) / 100.0, 3)::DOUBLE AS kwh
        FROM range(0, {meters * slots}::BIGINT) AS numbers(i)
        WHERE (i % {slots}) // 48 >= (i // {slots}) * {JOINING} // {meters}
    """  # noqa: S608 - only numbers and our own paths
    return write(folder, f"readings-{meters}.parquet", query, "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 500000")


def as_csv(path: Path, folder: Path) -> Path:
    """Some of the readings as CSV."""
    rows = f"SELECT * FROM '{path}' LIMIT {round(CSV_SHARE * count(path, folder))}"  # noqa: S608 - our own path
    return write(folder, path.with_suffix(".csv").name, rows, "FORMAT csv, HEADER")


def persons(folder: Path, number: int) -> Path:
    """Two rows of each of many persons, far apart."""
    query = f"""
        SELECT 'person ' || (i * 7919 % {number})::VARCHAR AS meter,
               TIMESTAMP '{FIRST}' + INTERVAL 1 DAY * (hash(i) % {DAYS})::INTEGER AS half_hour, 1.5 AS kwh
        FROM range(0, {2 * number}::BIGINT) AS numbers(i)
    """  # noqa: S608 - only numbers
    return write(folder, f"persons-{number}.parquet", query, "FORMAT parquet")


def wide(folder: Path, columns: int) -> Path:
    """A hundred persons, one column for each hour."""
    path = folder / f"wide-{columns}.csv"
    first = datetime.fromisoformat(FIRST)
    names = [f"{first + timedelta(hours=hour):%Y-%m-%d %H:%M}" for hour in range(columns)]
    with path.open("w") as file:
        file.write(",".join(["meter", *names]) + "\n")
        for person in range(100):
            cells = (f"{(person * 31 + hour * 17) % 4000 / 1000:.3f}" for hour in range(columns))
            file.write(f"m{person}," + ",".join(cells) + "\n")
    return path


def count(path: Path, folder: Path) -> int:
    """How many rows there are."""
    with connect(folder) as connection:
        return int(connection.execute(f"SELECT count(*) FROM '{path}'").fetchone()[0])  # noqa: S608 - our own path


def ours(path: Path, folder: Path) -> dict[str, Any]:
    """The library's way, to a private answer."""
    import ibis

    import dpselect as dp
    from dpselect.tables import Calendar, Question, bounded_query, open_source

    # Libraries are loaded before the clock starts, here as for the bare query.
    ibis.duckdb.connect().disconnect()
    facts: dict[str, Any] = {"user": "meter", "cap": 50, "grid": 50_000, "population": METERS}
    limit, calendar = MEMORY_LIMIT, Calendar(FIRST, LAST)
    if path.name.startswith("wide"):
        hours = timedelta(hours=int(path.stem.partition("-")[2]) - 1)
        calendar = Calendar(f"{FIRST} 00:00", f"{datetime.fromisoformat(FIRST) + hours:%Y-%m-%d %H:%M}", every="hour")
        question = Question(shape="wide", **facts)
    else:
        question = Question(time="half_hour", value="kwh", **facts)
    if path.name.startswith("persons"):
        limit = "2GiB"

    def ask() -> dict[str, Any]:
        source = open_source(path, options=settings(folder, limit))
        answer = bounded_query(source, question, calendar, progress=lambda share: show(share, "ours"))
        peak = dp.GaussianNoisyMax(answer.family, sigma=0.02).release(answer.values)
        return {"answer": answer.labels[peak.index], "check": sum(answer.totals) / 1000}

    return timed(ask)


def bare(path: Path, folder: Path, *, plain: bool) -> dict[str, Any]:
    """The same file in bare SQL."""
    import duckdb  # noqa: F401 - loaded before the clock starts

    day = "SELECT date_trunc('day', half_hour) AS day, sum(kwh) AS total"
    query = f"{day} FROM '{path}' GROUP BY day"
    if not plain:
        query = f"""
            SELECT day, sum(total) FROM (
                SELECT meter, date_trunc('day', half_hour) AS day, sum(kwh) AS total FROM '{path}' GROUP BY meter, day
            ) GROUP BY day
        """  # noqa: S608 - only our own path

    def ask() -> dict[str, Any]:
        with connect(folder) as connection:
            rows = run_with_progress(connection, query, "bare, per day" if plain else "bare, per meter and day")
        return {"check": sum(total for _, total in rows)}

    return timed(ask)


def timed(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What the work gives, with its seconds and those of the processors."""
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    found = work()
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**found, "seconds": seconds, "processor": processor, "gib": after.ru_maxrss / 2**20}


def measure(way: str, path: Path, folder: Path) -> dict[str, Any]:
    """One measurement in a process of its own, so that memory peaks do not mix."""
    command = [sys.executable, __file__, "--child", way, "--file", str(path), "--dir", str(folder)]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, Any] = json.loads(out)
    return found


def best(path: Path, folder: Path, ways: tuple[str, ...], repeats: int) -> dict[str, dict[str, Any]]:
    """The ways take turns; each one's quickest run, with the most memory that any took."""
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way in ways:
            found[way].append(measure(way, path, folder))
    most = {way: max(run["gib"] for run in runs) for way, runs in found.items()}
    return {way: min(runs, key=lambda run: run["seconds"]) | {"gib": most[way]} for way, runs in found.items()}


def line(kind: str, what: str, runs: dict[str, dict[str, Any]]) -> tuple[str, bool]:
    """A line of the table, and whether the target is met."""
    mine = runs["ours"]
    cells = [f"{mine['seconds']:.1f} s ({mine['processor']:.1f} s, {mine['gib']:.2f} GiB)"]
    ratio = 0.0
    for way in ("bare", "plain"):
        cells.append(f"{runs[way]['seconds']:.1f} s ({runs[way]['processor']:.1f} s)" if way in runs else "–")
    if "bare" in runs:
        assert abs(runs["bare"]["check"] - mine["check"]) < 1e-6 * mine["check"], "not the same rows"
        ratio = mine["seconds"] / runs["bare"]["seconds"]
        cells.append(f"{ratio:.2f} ({mine['processor'] / runs['bare']['processor']:.2f})")
    else:
        cells.append("–")
    if kind not in TARGETS:
        return f"| {what} | " + " | ".join(cells) + " | ratio of 1: missed |", True
    name, most = TARGETS[kind]
    met = {"ratio": ratio, "gib": mine["gib"], "seconds": mine["seconds"]}[name] <= most
    word = {"ratio": "ratio", "gib": "GiB", "seconds": "s"}[name]
    return f"| {what} | " + " | ".join(cells) + f" | at most {most:g} {word}: {'met' if met else 'missed'} |", met


def main() -> int:
    """Generates, measures, prints; 1 when a target is missed at full size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows (default 1)")
    parser.add_argument("--repeats", type=int, default=2, help="turns each way takes; the best counts")
    parser.add_argument("--dir", type=Path, help="folder for the data, which is then kept (default: a temporary one)")
    parser.add_argument("--child", choices=["ours", "bare", "plain"], help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        way, path, folder = arguments.child, arguments.file, arguments.dir
        print(json.dumps(ours(path, folder) if way == "ours" else bare(path, folder, plain=way == "plain")))
        return 0
    started, lines, met = time.perf_counter(), [], True
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.dir or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        parquet = readings(folder, max(1, round(METERS * arguments.scale)))
        files = [("parquet", parquet), ("csv", as_csv(parquet, folder))]
        files += [("persons", persons(folder, max(1, round(PERSONS * arguments.scale))))]
        files += [("wide", wide(folder, columns)) for columns in WIDE]
        for kind, path in files:
            ways = ("bare", "ours", "plain") if kind in ("parquet", "csv") else ("ours",)
            size = f"{path.stat().st_size / 2**20:,.0f} MiB"
            what = f"{path.stem.replace('-', ' ')} columns, {size}"
            if kind != "wide":
                what = f"{path.suffix[1:]}: {count(path, folder):,} rows, {size}" + (" (persons)" * (kind == "persons"))
            told, fits = line(kind, what, best(path, folder, ways, arguments.repeats))
            lines, met = [*lines, told], met and fits
    print("| file | ours (processors, peak) | bare, meter and day | bare, day only | ratio (of processors) | target |")
    print("|---|---|---|---|---|---|")
    print("\n".join(lines))
    print(f"best of {arguments.repeats}; {time.perf_counter() - started:.0f} s in all")
    return int(arguments.scale >= 1 and not met)


if __name__ == "__main__":
    sys.exit(main())
