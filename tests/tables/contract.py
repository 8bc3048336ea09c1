"""The contract of the engines as a table of cases: the same integers on the same dirty rows, or the difference.

    python -m tests.tables.contract                       # every engine that is on this machine
    python -m tests.tables.contract duckdb "spark local"  # some of them
    DPSELECT_SPARK_MASTER=spark://host:7077 python -m pytest -k spark tests/tables/test_engines.py

Each engine answers in a process of its own, because a process has one Spark. An engine that is not here is told so.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
STANDALONE = "standalone"
#: What stands above a column; the engine's name in the tests, and Spark's master.
COLUMNS = {
    "DuckDB": ("duckdb", None),
    "Polars": ("polars", None),
    "SQLite": ("sqlite", None),
    "PostgreSQL": ("postgres", None),
    "MariaDB": ("mariadb", None),
    "Spark local": ("spark", "local[2]"),
    "Spark local-cluster": ("spark", LOCAL_CLUSTER),
    "Spark standalone": ("spark", STANDALONE),
}
KEPT, REFUSED = "✓", "refused by name"


@contextmanager
def standalone() -> Iterator[str]:
    """The address of a master with one worker of two cores, both on this machine and ended afterwards."""
    import pyspark

    start = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as ending:
        here = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1", "SPARK_WORKER_DIR": folder}
        log = ending.enter_context((Path(folder) / "log").open("wb"))
        for part in (
            ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"],
            ["worker.Worker", address, "--host", "127.0.0.1", "--cores", "2", "--memory", "1g", "--webui-port", "0"],
        ):
            process = subprocess.Popen(
                [start, f"org.apache.spark.deploy.{part[0]}", *part[1:]], stdout=log, stderr=log, env=here, cwd=folder
            )
            ending.callback(process.wait, 60)
            ending.callback(process.terminate)
            _wait_for(port)
        yield address


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError("Spark's master does not answer")


def outcomes(engine: str, master: str | None = None) -> dict[str, str]:
    """How each case of the contract ends on an engine: ✓, refused, why it was skipped, or the difference."""
    with ExitStack() as ending:
        if master == STANDALONE:
            master = ending.enter_context(standalone())
        report = Path(ending.enter_context(tempfile.TemporaryDirectory())) / "report.xml"
        plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-k",
                f"[{engine}",
                f"--junitxml={report}",
                "--override-ini=junit_family=xunit1",  # which has properties of single cases
                "tests/tables/test_engines.py",
            ],
            cwd=ROOT,
            env=plain | ({"DPSELECT_SPARK_MASTER": master} if master else {}),
            capture_output=True,
            check=False,
        )
        return dict(_told(case, engine) for case in ElementTree.parse(report).iter("testcase"))  # noqa: S314 - our own


def _told(case: ElementTree.Element, engine: str) -> tuple[str, str]:
    named = re.fullmatch(r"test_(\w+)\[(.*)\]", case.get("name", ""))
    assert named, case.attrib
    shape = named[2].removeprefix(engine).removeprefix("-")
    name = named[1].replace("_", " ") + (f" ({shape})" if shape else "")
    wrong = next((part for part in case if part.tag in ("failure", "error", "skipped")), None)
    instead = case.find("properties/property[@name='instead']")
    if wrong is None and instead is not None:
        return name, instead.get("value", "")
    return name, KEPT if wrong is None else " ".join(wrong.get("message", wrong.tag).split())[:80].replace("|", "/")


def main(wanted: list[str]) -> int:
    """Prints the table; 1 where some case is not kept."""
    columns = {name: how for name, how in COLUMNS.items() if not wanted or name.lower() in wanted}
    found = {name: outcomes(*how) for name, how in columns.items()}
    cases = list(dict.fromkeys(case for column in found.values() for case in column))
    print("| case |" + "".join(f" {name} |" for name in found))
    print("|---|" + "---|" * len(found))
    for case in cases:
        print(f"| {case} |" + "".join(f" {column.get(case, '–')} |" for column in found.values()))
    return int(any(told not in (KEPT, REFUSED) for column in found.values() for told in column.values()))


if __name__ == "__main__":
    sys.exit(main([name.lower() for name in sys.argv[1:]]))
