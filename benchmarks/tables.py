"""167 million half-hourly readings in Parquet, and 2 GB of them in CSV, to an answer, beside a bare GROUP BY.

    python benchmarks/tables.py                 # full size: 5,564 meters, 829 days, some minutes, 2.5 GB of disk
    python benchmarks/tables.py --scale 0.01    # a hundredth of the meters

Meters join over the first 407 days, as in a real roll-out, so that 5,564 meters × 829 days × 48 half hours hold
167 million readings rather than 221 million. Three ways over the same file, each in a process of its own with the
same threads and memory limit, taking turns:

* ours: ``bounded_query``, per meter and day cut and rounded to whole steps, then per day, and a noisy maximum;
* the same shape in bare SQL: ``GROUP BY`` meter and day, then ``GROUP BY`` day, floating-point sums, nothing checked;
* one plain ``GROUP BY`` day, which no longer knows whose reading is whose, and so can bound nothing.

The target for Parquet is a ratio of at most 1.3 to the first bare query and a peak memory under 3 GiB. For CSV, DuckDB
finds out the types of the bare queries by itself; ours takes nothing but text, and reads it by fixed patterns.
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
from pathlib import Path
from typing import Any

METERS, DAYS, JOINING = 5_564, 829, 407
FIRST, LAST = "2011-11-23", "2014-02-28"
MEMORY_LIMIT = "2500MiB"
THREADS = 2
TARGET_RATIO, TARGET_GIB = 1.3, 3.0
#: The share of the readings that makes 2 GB of CSV.
CSV_SHARE = 0.335


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


def connect(folder: Path) -> Any:
    """DuckDB with the benchmark's limits."""
    import duckdb

    settings = {"memory_limit": MEMORY_LIMIT, "threads": THREADS, "temp_directory": str(folder / "spill")}
    connection = duckdb.connect(config=settings)
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")
    return connection


def generate(folder: Path, meters: int) -> Path:
    """Writes the readings, streaming: meter, time and kWh, meters one after the other."""
    path = folder / f"readings-{meters}.parquet"
    if path.exists():
        return path
    slots = DAYS * 48
    unfinished = path.with_suffix(".part")
    query = f"""
        COPY (
            SELECT 'MAC' || lpad((i // {slots})::VARCHAR, 6, '0') AS meter,
                   make_timestamp(epoch_us(TIMESTAMP '{FIRST}') + (i % {slots}) * 1800000000) AS half_hour,
                   round(0.05 + 0.4 * pow((hash(i) % 10000) / 10000.0, 4)
                         + 0.1 * sin((i % 48) / 7.6) ** 2 + (i // {slots} % 17) / 100.0, 3)::DOUBLE AS kwh
            FROM range(0, {meters * slots}::BIGINT) AS numbers(i)
            WHERE (i % {slots}) // 48 >= (i // {slots}) * {JOINING} // {meters}
        ) TO '{unfinished}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 500000)
    """  # noqa: S608 - only numbers and our own paths
    with connect(folder) as connection:
        run_with_progress(connection, query, "generating")
    unfinished.rename(path)
    return path


def as_csv(path: Path, folder: Path) -> Path:
    """Some of the readings as CSV."""
    written = path.with_suffix(".csv")
    rows = f"SELECT * FROM '{path}' LIMIT {round(CSV_SHARE * count(path, folder))}"  # noqa: S608 - our own path
    with connect(folder) as connection:
        run_with_progress(connection, f"COPY ({rows}) TO '{written}' (FORMAT csv, HEADER)", "writing CSV")
    return written


def count(path: Path, folder: Path) -> int:
    """How many rows there are."""
    with connect(folder) as connection:
        return int(connection.execute(f"SELECT count(*) FROM '{path}'").fetchone()[0])  # noqa: S608 - our own path


def ours(path: Path, folder: Path) -> dict[str, Any]:
    """The library's way, to a private answer."""
    import ibis

    import dpselect as dp
    from dpselect.tables import Calendar, Question, bounded_query, open_source

    # Libraries are loaded before the clock starts, here as for the bare query; whole commands are timed apart.
    ibis.duckdb.connect().disconnect()
    picker = dp.GaussianNoisyMax
    options = {"memory_limit": MEMORY_LIMIT, "threads": THREADS, "temp_directory": str(folder / "spill")}
    started = time.perf_counter()
    source = open_source(path, options=options)
    question = Question(user="meter", time="half_hour", value="kwh", cap=50, grid=50_000, population=METERS)
    calendar = Calendar(FIRST, LAST)
    answer = bounded_query(source, question, calendar, progress=lambda share: show(share, "ours"))
    peak = picker(answer.family, sigma=0.02).release(answer.values)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "answer": answer.labels[peak.index], "check": sum(answer.totals) / 1000}


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
    started = time.perf_counter()
    with connect(folder) as connection:
        rows = run_with_progress(connection, query, "bare, per day" if plain else "bare, per meter and day")
    return {"seconds": time.perf_counter() - started, "check": sum(total for _, total in rows)}


def child(way: str, path: Path, folder: Path) -> None:
    """One measurement, as a line of JSON on standard output."""
    found = ours(path, folder) if way == "ours" else bare(path, folder, plain=way == "plain")
    found["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(found))


def measure(way: str, path: Path, folder: Path) -> dict[str, Any]:
    """One measurement in a process of its own, so that memory peaks do not mix."""
    command = [sys.executable, __file__, "--child", way, "--file", str(path), "--dir", str(folder)]
    started = time.perf_counter()
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, Any] = json.loads(out)
    found["command"] = time.perf_counter() - started
    return found


def main() -> int:
    """Generates, measures, prints; 1 when a target is missed at full size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the meters (default 1)")
    parser.add_argument("--repeats", type=int, default=2, help="turns each way takes; the best counts")
    parser.add_argument("--dir", type=Path, help="folder for the data (default: a temporary one)")
    parser.add_argument("--keep", action="store_true", help="keep the generated file")
    parser.add_argument("--child", choices=["ours", "bare", "plain"], help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.file, arguments.dir)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.dir or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        path = generate(folder, max(1, round(METERS * arguments.scale)))
        files = [path]
        try:
            missed = compare(path, folder, arguments.repeats, full=arguments.scale >= 1)
            files.append(as_csv(path, folder))
            compare(files[-1], folder, arguments.repeats, full=False)
            return missed
        finally:
            if not arguments.keep:
                for file in files:
                    file.unlink()


def compare(path: Path, folder: Path, repeats: int, *, full: bool) -> int:
    """Takes turns, keeps each way's best time and worst memory, and prints the ratios."""
    rows = count(path, folder)
    best: dict[str, dict[str, Any]] = {}
    for _ in range(repeats):
        for way in ("bare", "ours", "plain"):
            found = measure(way, path, folder)
            earlier = best.setdefault(way, found)
            for clock in ("seconds", "command"):
                earlier[clock] = min(earlier[clock], found[clock])
            earlier["peak_gib"] = max(earlier["peak_gib"], found["peak_gib"])
    print(f"{rows:,} rows, {path.stat().st_size / 2**20:,.0f} MiB of {path.suffix[1:]}, best of {repeats}")
    names = {"ours": "bounded_query", "bare": "bare, meter and day", "plain": "bare, day only"}
    for way, name in names.items():
        found = best[way]
        print(
            f"{name:<22}{found['seconds']:8.1f} s ({found['command']:.1f} s with start-up)"
            f"{found['peak_gib']:8.2f} GiB peak   total {found['check']:,.3f} kWh"
        )
    ratio = best["ours"]["seconds"] / best["bare"]["seconds"]
    plain = best["ours"]["seconds"] / best["plain"]["seconds"]
    peak = best["ours"]["peak_gib"]
    target = f" (target at most {TARGET_RATIO})" if path.suffix == ".parquet" else ""
    print(f"ratio to bare per meter and day: {ratio:.2f}{target}; to day only: {plain:.2f}")
    whole = best["ours"]["command"] / best["bare"]["command"]
    print(f"whole commands, start-up included: {whole:.2f}; the private answer: {best['ours']['answer']}")
    print(f"peak memory: {peak:.2f} GiB (target under {TARGET_GIB:.0f})")
    return int(full and (ratio > TARGET_RATIO or peak >= TARGET_GIB))


if __name__ == "__main__":
    sys.exit(main())
