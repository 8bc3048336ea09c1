"""Places that are no good: secrets in them are not repeated, pipes do not hang, remote CSV is refused by name."""

from __future__ import annotations

import os
import random
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect.checks import refuse
from dpselect.errors import DPSelectError, SourceError
from dpselect.secrets import shown, without_secrets
from dpselect.tables import Calendar, Question, bounded_query, open_source

PASSWORD = "hunter2SECRET"  # noqa: S105
MISTYPED = [
    f"postgres:/curator:{PASSWORD}@db.example/meters",
    f"postgres:/curator:{PASSWORD}",
    f"postgres//curator:{PASSWORD}@db.example/meters",
    f"curator:{PASSWORD}@db.example/meters",
    f"postgres://curator:{PASSWORD}@db.example/meters",
    f"postgre://curator:{PASSWORD}@db.example/meters",
    f"https://curator:{PASSWORD}@files.example/readings.csv",
    f"https://{PASSWORD}@files.example/readings.parquet",
    f"https://files.example/readings.csv?sv=1&sig={PASSWORD}",
    f"s3://key:{PASSWORD}@bucket/readings.csv",
    f"sqlite://curator:{PASSWORD}@nowhere.sqlite",
    f"duckdb:///nowhere.duckdb?password={PASSWORD}",
    f"mysql://curator:{PASSWORD}/@db.example:port/meters",
]


@pytest.mark.parametrize("place", MISTYPED)
@pytest.mark.parametrize("table", [None, "readings"])
def test_a_mistyped_address_is_refused_without_its_secret(place, table):
    with pytest.raises(DPSelectError) as caught:
        open_source(place, table=table)
    assert PASSWORD not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", MISTYPED)
def test_no_rule_repeats_a_secret(place):
    assert PASSWORD not in str(refuse("backend", place, "something else")) or "@" not in place
    assert PASSWORD not in shown(place)


@given(st.text("abcXYZ019!$%^*()_+/:", min_size=4, max_size=20), st.text("abc:/", max_size=4))
def test_whatever_stands_before_the_at_of_an_address_is_hidden(secret, between):
    assert f":{secret}@" not in without_secrets(f"postgres://{between}me:{secret}@host/db")
    assert secret not in shown(f"postgres:/{between}me:{secret}@host/db").removeprefix("'postgres://")


@pytest.mark.parametrize("name", ["readings.csv", "readings.parquet", "readings.csv.gz"])
def test_a_pipe_is_refused_at_once(tmp_path, name):
    os.mkfifo(tmp_path / name)
    for place in (tmp_path / name, tmp_path / "*", tmp_path):
        with pytest.raises(SourceError, match="is not a plain file"):
            open_source(place)


@pytest.mark.parametrize("place", ["s3://bucket/readings.csv", "https://files.example/readings.csv.gz?sig=x"])
@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_remote_csv_is_refused_by_name_with_what_to_do(place, backend):
    with pytest.raises(SourceError, match=r"download '.*readings\.csv.*' first, or store Parquet there"):
        open_source(place, backend=backend)


class Ranges(SimpleHTTPRequestHandler):
    """Files by parts, as engines ask for them; nothing is printed."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path.partition("?")[0]))
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "bytes=0-")
        first, last = (int(asked[1]) if asked[1] else None), (int(asked[2]) if asked[2] else None)
        if first is None:
            first, last = max(0, len(content) - last), None
        last = len(content) - 1 if last is None else min(last, len(content) - 1)
        self.send_response(206 if self.headers.get("Range") else 200)
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[first : last + 1])

    do_HEAD = do_GET

    def log_message(self, *_) -> None:
        """Nothing."""


@pytest.fixture
def website(tmp_path):
    """The address of a server of the folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Ranges, directory=str(tmp_path))) as server:
        worker = threading.Thread(target=server.serve_forever)
        worker.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        worker.join()


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_remote_parquet_is_read_through_the_engine(backend, website, tmp_path):
    if backend == "duckdb":
        try:
            duckdb.connect().load_extension("httpfs")
        except duckdb.Error:
            pytest.skip("DuckDB's httpfs extension is not installed here")
    rows = {"user": ["a", "b"], "at": ["2013-01-01", "2013-01-02"], "kwh": [1.0, 2.0]}
    pq.write_table(pa.table(rows), tmp_path / "one.parquet")
    pq.write_table(pa.table(rows | {"user": ["c", "d"]}), tmp_path / "two.parquet")
    pq.write_table(pa.table(rows | {"kwh": [1, 2]}), tmp_path / "other.parquet")
    question = Question(user="user", time="at", value="kwh", cap=10, grid=10, population=9)
    days = Calendar("2013-01-01", "2013-01-02")
    both = [f"{website}/one.parquet", f"{website}/two.parquet"]
    assert bounded_query(open_source(both[0], backend=backend), question, days).totals == (1, 2)
    assert bounded_query(open_source(both, backend=backend), question, days).totals == (2, 4)
    for wrong in ([both[0], f"{website}/other.parquet"], f"{website}/none.parquet?sig={PASSWORD}"):
        with pytest.raises(SourceError) as caught:
            bounded_query(open_source(wrong, backend=backend), question, days)
        assert PASSWORD not in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", ["x" * 10_000, "\0", "a\0.csv", "*" * 300, ["\0"], "duckdb://" + "x" * 9000])
def test_names_no_file_can_have_are_refused(place):
    with pytest.raises(DPSelectError) as caught:
        open_source(place, table="t" if "://" in place else None)
    assert len(str(caught.value)) < 250


def quoted_csv(path, *, megabytes: int) -> tuple[int, int]:
    """Long quoted fields full of lines that look like rows, which a reader starting in their middle would count."""
    chance = random.Random(1)
    totals = [0, 0]
    block = "\nnobody,2013-01-01,9" * 50_000
    with path.open("w") as file:
        file.write("user,at,kwh,remark\n")
        for number in range(megabytes):
            day = chance.randint(1, 2)
            totals[day - 1] += 1
            file.write(f'u{number},2013-01-0{day},1,"said: {block}\n"\n')
    return tuple(totals)


def test_row_like_lines_inside_quotes_are_no_rows(tmp_path):
    path = tmp_path / "quoted.csv"
    totals = quoted_csv(path, megabytes=24)
    question = Question(user="user", time="at", value="kwh", cap=10, grid=10, population=99)
    days = Calendar("2013-01-01", "2013-01-02")
    for backend in ("duckdb", "polars"):
        answer = bounded_query(open_source(path, backend=backend), question, days)
        assert answer.totals == totals, backend
        assert answer.curator_report.rows == 24


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_a_quote_that_stays_open_after_long_quoted_fields_is_refused(backend, tmp_path):
    """However a large file is read in the end, its last rows are not dropped in silence."""
    path = tmp_path / "quoted.csv"
    quoted_csv(path, megabytes=24)
    with path.open("a") as file:
        file.write('SECRET,2013-01-01,1,"said\nb,2013-01-01,2,nothing\n')
    question = Question(user="user", time="at", value="kwh", cap=10, grid=10, population=99)
    with pytest.raises(SourceError, match="an open quote") as caught:
        bounded_query(open_source(path, backend=backend), question, Calendar("2013-01-01", "2013-01-02"))
    assert "SECRET" not in str(caught.value)


def test_a_folder_with_one_inside_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "not allowed", "SECRET")

    monkeypatch.setattr(Path, "rglob", refused)
    with pytest.raises(SourceError, match="cannot be read; check the path and your rights"):
        open_source(tmp_path)
