"""A CSV file means the same rows to every engine, or is refused by every engine."""

from __future__ import annotations

import pytest

from dpselect.errors import SourceError
from dpselect.tables import Calendar, Question, bounded_query, open_source
from dpselect.tables.failures import engine_failures
from dpselect.tables.passes import files_under

HEADER = b"user,at,kwh\n"
QUESTION = Question(user="user", time="at", value="kwh", cap=10, grid=10, population=9)
DAYS = Calendar("2013-01-01", "2013-01-02")

READ = {
    "blank lines": HEADER + b"\na,2013-01-01,1\n\n\nb,2013-01-02,2\n\n",
    "a line break in quotes": HEADER + b'"a\nx",2013-01-01,1\nb,2013-01-02,2\n',
    "carriage returns": b'user,at,kwh\r\n"a\r\nx",2013-01-01,1\r\nb,2013-01-02,2\r\n',
    "no last line break": HEADER + b"a,2013-01-01,1\nb,2013-01-02,2",
    "a byte order mark": b"\xef\xbb\xbf" + HEADER + b"a,2013-01-01,1\nb,2013-01-02,2\n",
    "a separator and quotes in quotes": HEADER + b'"a, ""x""",2013-01-01,1\nb,2013-01-02,2\n',
    "a quote inside a field": HEADER + b'a"x,2013-01-01,1\nb,2013-01-02,2\n',
    "signs that are comments elsewhere": HEADER + b"#a,2013-01-01,1\nb,2013-01-02,2\n",
    "a backslash before a quote": HEADER + b'"a\\",2013-01-01,1\nb,2013-01-02,2\n',
    "a quoted header": b'"user","at","kwh"\na,2013-01-01,1\nb,2013-01-02,2\n',
}
REFUSED = {
    "too many fields": HEADER + b"a,2013-01-01,1\nSECRET,2013-01-01,2,9\n",
    "too few fields": HEADER + b"a,2013-01-01,1\nSECRET,2013-01-01\n",
    "too few fields in the first row": HEADER + b"SECRET,2013-01-01\na,2013-01-01,1\n",
    "a line of spaces": HEADER + b"a,2013-01-01,1\n   \n",
    "a quote that stays open": HEADER + b'a,2013-01-01,1\n"SECRET,2013-01-01,2\nb,2013-01-01,2\n',
    "a quote that stays open in the last field": HEADER + b'a,2013-01-01,1\nSECRET,2013-01-01,"2\nb,2013-01-01,2\n',
}


@pytest.mark.parametrize("name", READ)
def test_the_same_rows_are_read(engine, name, tmp_path):
    path = tmp_path / "readings.csv"
    path.write_bytes(READ[name])
    answer = bounded_query(open_source(path, backend=engine), QUESTION, DAYS)
    assert answer.totals == (1, 2)
    assert answer.curator_report.rows == answer.curator_report.users == 2


@pytest.mark.parametrize("name", REFUSED)
def test_the_same_rows_are_refused_and_not_repeated(engine, name, tmp_path):
    path = tmp_path / "readings.csv"
    path.write_bytes(REFUSED[name])
    with pytest.raises(SourceError, match="a row with too many or too few fields") as caught:
        bounded_query(open_source(path, backend=engine), QUESTION, DAYS)
    assert "SECRET" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_text_that_is_not_utf_8_is_refused(backend, tmp_path):
    path = tmp_path / "readings.csv"
    path.write_bytes(HEADER + b"a,2013-01-01,1\n\xff\xfeSECRET,2013-01-01,2\n")
    with pytest.raises(SourceError, match="text not in UTF-8"):
        bounded_query(open_source(path, backend=backend), QUESTION, DAYS)


@pytest.mark.slow
def test_spark_reads_other_bytes_as_replacement_characters(spark, tmp_path):
    """A known difference: two names that differ only in such bytes are one person, which adds less, never more."""
    path = tmp_path / "readings.csv"
    path.write_bytes(HEADER + b"x\xff,2013-01-01,6\nx\xfe,2013-01-01,7\n")
    assert bounded_query(open_source(path, backend="spark"), QUESTION, DAYS).totals == (10, 0)


def test_empty_fields_name_nobody_on_any_engine(engine, tmp_path):
    path = tmp_path / "readings.csv"
    path.write_bytes(HEADER + b',2013-01-01,1\n"",2013-01-01,1\nb,2013-01-02,2\nc,2013-01-02,\n')
    answer = bounded_query(open_source(path, backend=engine), QUESTION, DAYS)
    assert answer.totals == (0, 2)
    assert (answer.curator_report.rows, answer.curator_report.without_user) == (4, 2)


@pytest.mark.parametrize("name", READ)
def test_duckdb_reads_the_same_rows_in_one_piece(name, tmp_path):
    path = tmp_path / "readings.csv"
    path.write_bytes(READ[name])
    table = open_source(path, backend="duckdb")
    with engine_failures("reading again"):  # where a pass reads again
        files_under(table.get_backend()).read_otherwise()
    answer = bounded_query(table, QUESTION, DAYS)
    assert answer.totals == (1, 2)
    assert answer.curator_report.rows == 2
