"""The same rows give the same integers by every route: endings, archives, sheets, lines, folders, pipes, notations."""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from dpselect.errors import InvalidParameter, SourceError
from dpselect.tables import Calendar, Question, bounded_query, open_source
from dpselect.tables.rows import described_rows
from dpselect.tables.whole_files import from_stream

#: Persons, days and readings, among them some that cannot be used, and one that must not be rounded on the way.
ROWS = [
    ("a", "2013-01-01", "1.5"),
    ("a", "2013-01-02", "0.1"),
    ("b", "2013-01-01", "12"),
    ("b", "2013-01-03", "0.30000000000000004"),
    ("c", "2013-01-02", "-2"),
    ("c", "2013-01-03", "many"),
    ("d", "yesterday", "3"),
    ("", "2013-01-03", "4"),
    ("7", "2013-01-03", "1e-3"),
]
NAMES = ("user", "at", "kwh")
DAYS = Calendar("2013-01-01", "2013-01-03")
TOTALS = (115_000, 1_000, 3_010)


def asked(**changes: Any) -> Question:
    return Question(user="user", time="at", value="kwh", cap=10, grid=100_000, population=9, **changes)


def csv_text(mark: str = ",", end: str = "\n") -> bytes:
    return end.join(mark.join(row) for row in (NAMES, *ROWS)).encode() + end.encode()


def as_csv(folder: Path) -> Path:
    (folder / "rows.csv").write_bytes(csv_text())
    return folder / "rows.csv"


def as_gzip(folder: Path) -> Path:
    (folder / "rows.csv.gz").write_bytes(gzip.compress(csv_text()))
    return folder / "rows.csv.gz"


def as_tsv(folder: Path) -> Path:
    (folder / "rows.tsv").write_bytes(csv_text("\t", "\r\n"))
    return folder / "rows.tsv"


def as_txt(folder: Path) -> Path:
    (folder / "rows.txt").write_bytes(b"\xef\xbb\xbf" + csv_text())
    return folder / "rows.txt"


def as_zip(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "rows.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("export/rows.csv", csv_text())
        archive.writestr("__MACOSX/._rows.csv", b"junk")
    return folder / "rows.zip"


def as_json_lines(folder: Path) -> Path:
    with (folder / "rows.jsonl").open("w") as file:
        for user, at, kwh in ROWS:
            number = kwh if kwh != "many" else json.dumps(kwh)  # numbers as JSON numbers
            file.write(f'{{"user": {json.dumps(user)}, "at": "{at}", "kwh": {number}}}\n\n')
    return folder / "rows.jsonl"


def as_parquet_folder(folder: Path) -> Path:
    place = folder / "rows"
    for number, part in enumerate((ROWS[:4], ROWS[4:])):
        (place / f"part={number}").mkdir(parents=True)
        columns = dict(zip(NAMES, map(list, zip(*part, strict=True)), strict=True))
        parquet.write_table(pyarrow.table(columns), place / f"part={number}" / "0.parquet")
    (place / "_SUCCESS").write_text("")
    (place / "._junk.parquet").write_text("junk")
    return place


def as_several(folder: Path) -> tuple[str, ...]:
    header, *lines = csv_text().splitlines(keepends=True)
    for number, part in enumerate((lines[:5], lines[5:])):
        (folder / f"rows-{number}.csv").write_bytes(b"".join([header, *part]))
    return tuple(str(folder / f"rows-{number}.csv") for number in range(2))


def as_address(folder: Path) -> str:
    place = folder / "my rows.csv"
    place.write_bytes(csv_text())
    return place.as_uri()


def as_excel(folder: Path) -> Path:
    pytest.importorskip("python_calamine", reason="python-calamine is not installed; run make setup")
    write_sheets(folder / "rows.xlsx", {"readings": [NAMES, *ROWS]})
    return folder / "rows.xlsx"


def write_sheets(path: Path, sheets: dict[str, list[tuple[Any, ...]]]) -> None:
    """A workbook as Excel stores it: numbers as numbers, dates as days since 1900 under a date format."""
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml."

    def cell(text: Any) -> str:
        try:
            return f"<c><v>{float(text)!r}</v></c>"
        except ValueError:
            pass
        try:
            return f'<c s="1"><v>{(date.fromisoformat(text) - date(1899, 12, 30)).days}</v></c>'
        except ValueError:
            return f'<c t="inlineStr"><is><t>{text}</t></is></c>' if text else "<c/>"

    with zipfile.ZipFile(path, "w") as book:
        parts = [(f"/xl/worksheets/sheet{number}.xml", f"{kind}worksheet+xml") for number in range(1, len(sheets) + 1)]
        parts += [("/xl/workbook.xml", f"{kind}sheet.main+xml"), ("/xl/styles.xml", f"{kind}styles+xml")]
        overrides = "".join(f'<Override PartName="{part}" ContentType="{what}"/>' for part, what in parts)
        book.writestr(
            "[Content_Types].xml",
            f'{head}<Types xmlns="{package}/content-types"><Default Extension="rels" '
            f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>{overrides}</Types>',
        )
        book.writestr(
            "_rels/.rels",
            f'{head}<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
            f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        listed = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, 1))
        book.writestr(
            "xl/workbook.xml", f'{head}<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{listed}</sheets></workbook>'
        )
        links = "".join(
            f'<Relationship Id="r{n}" Type="{office}/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n in range(1, len(sheets) + 1)
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            f'{head}<Relationships xmlns="{package}/relationships">{links}<Relationship Id="rs" Type="{office}/styles" '
            'Target="styles.xml"/></Relationships>',
        )
        book.writestr(
            "xl/styles.xml",
            f'{head}<styleSheet xmlns="{main}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
            "</styleSheet>",
        )
        for number, rows in enumerate(sheets.values(), 1):
            lines = "".join("<row>" + "".join(map(cell, row)) + "</row>" for row in rows)
            sheet = f'{head}<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>'
            book.writestr(f"xl/worksheets/sheet{number}.xml", sheet)


ROUTES = [as_csv, as_gzip, as_tsv, as_txt, as_zip, as_json_lines, as_parquet_folder, as_several, as_address, as_excel]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_every_route_gives_the_same_integers(route: Any, backend: str, tmp_path: Path) -> None:
    answer = bounded_query(open_source(route(tmp_path), backend=backend), asked(), DAYS)
    assert answer.totals == TOTALS
    report = answer.curator_report
    assert (report.rows, report.used, report.without_user, report.without_candidate) == (9, 6, 1, 1)


@pytest.mark.parametrize("route", [as_csv, as_gzip, as_json_lines])
def test_a_pipe_gives_the_same_integers(route: Any, tmp_path: Path) -> None:
    table = from_stream(io.BytesIO(Path(route(tmp_path)).read_bytes()))
    assert bounded_query(table, asked(), DAYS).totals == TOTALS


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_decimal_commas_give_the_same_integers_only_where_they_are_announced(backend: str, tmp_path: Path) -> None:
    place = tmp_path / "rows.csv"
    place.write_bytes(csv_text(";").replace(b".", b","))
    table = open_source(place, backend=backend, delimiter=";")
    assert bounded_query(table, asked(decimal=","), DAYS).totals == TOTALS
    assert bounded_query(table, asked(), DAYS).totals != TOTALS
    # A point is then no part of a number, so that 1.234 is not taken for a thousand or for one.
    plain = open_source(as_csv(tmp_path), backend=backend)
    assert bounded_query(plain, asked(decimal=","), DAYS).totals == (100_000, 0, 10)


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("%d/%m/%Y", "{day:02d}/01/2013"),
        ("%-d/%-m/%Y", "{day}/1/2013"),
        ("%-d/%-m/%Y", "{day:02d}/01/2013"),
        ("%-m/%-d/%Y %-I:%M %p", "1/{day}/2013 12:30 pm"),
        ("%m-%d-%Y %I:%M:%S%p", "01-{day:02d}-2013 01:30:00AM"),
        ("%-H Uhr, %-d.%-m.%Y", "7 Uhr, {day}.1.2013"),
    ],
)
def test_every_way_to_write_a_time_gives_the_same_integers(
    backend: str, form: str, written: str, tmp_path: Path
) -> None:
    rows = [(user, written.format(day=int(at[-2:])) if at[:1] == "2" else at, kwh) for user, at, kwh in ROWS]
    columns = dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))
    table = open_source(pyarrow.table(columns), backend=backend)
    assert bounded_query(table, asked(time_format=form), DAYS).totals == TOTALS


def test_twelve_hour_clocks_put_midnight_and_noon_where_they_belong() -> None:
    times = ["1/1/2013 12:00 AM", "1/1/2013 12:59 am", "1/1/2013 1:00 AM", "1/1/2013 12:00 PM", "1/1/2013 11:00 PM"]
    rows = pyarrow.table({"user": list("abcde"), "at": times, "kwh": [1.0] * 5})
    hours = Calendar("2013-01-01", "2013-01-01", every="hour")
    totals = bounded_query(rows, asked(time_format="%-m/%-d/%Y %-I:%M %p"), hours).totals
    assert {hour: total // 10_000 for hour, total in enumerate(totals) if total} == {0: 2, 1: 1, 12: 1, 23: 1}


@pytest.mark.parametrize("form", ["%-d%-m%Y", "%-Y-%m-%d", "%d/%m/%Y %I:%M", "%d/%m/%Y %H %I %p", "%d/%d/%Y", "%-m/%Y"])
def test_a_format_that_could_mean_two_times_is_refused(form: str) -> None:
    rows = pyarrow.table({"user": ["a"], "at": ["1/1/2013"], "kwh": [1.0]})
    with pytest.raises(InvalidParameter, match="time_format must be made of"):
        bounded_query(rows, asked(time_format=form), DAYS)


@pytest.mark.parametrize(
    ("names", "said"),
    [(("a.csv", "b.csv"), "one CSV file"), ((), "one CSV file"), (("a.pdf",), "one CSV file")],
)
def test_a_zip_with_other_than_one_csv_file_is_refused(names: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "rows.zip", "w") as archive:
        for name in names:
            archive.writestr(name, "SECRET")
    with pytest.raises(SourceError, match=said) as caught:
        open_source(tmp_path / "rows.zip")
    assert "SECRET" not in str(caught.value)


def test_broken_containers_are_one_line(tmp_path: Path) -> None:
    for name in ("rows.zip", "rows.xlsx", "rows.jsonl"):
        (tmp_path / name).write_bytes(b'"SECRET" and not what it says')
        with pytest.raises(SourceError) as caught:
            open_source(tmp_path / name)
        assert "SECRET" not in str(caught.value)
        assert "\n" not in str(caught.value)
    with zipfile.ZipFile(tmp_path / "open.zip", "w") as archive:
        archive.writestr("a.csv", 'user,at,kwh\na,2013-01-01,"1\nb,2013-01-01,2\n')
    with pytest.raises(SourceError, match="open quote"):
        bounded_query(tmp_path / "open.zip", asked(), DAYS)
    with pytest.raises(SourceError, match="standard input is empty"):
        open_source(from_stream(io.BytesIO(b" \n")))


def test_a_workbook_of_several_sheets_needs_the_name_of_one(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="python-calamine is not installed; run make setup")
    write_sheets(tmp_path / "rows.xlsx", {"notes": [("a", "b")], "readings": [NAMES, *ROWS]})
    with pytest.raises(SourceError, match="2 sheets"):
        open_source(tmp_path / "rows.xlsx")
    with pytest.raises(SourceError, match="no sheet 'Readings'"):
        open_source(tmp_path / "rows.xlsx", table="Readings")
    assert bounded_query(open_source(tmp_path / "rows.xlsx", table="readings"), asked(), DAYS).totals == TOTALS


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
@pytest.mark.parametrize("hours", [[0, 7, 23, 24], ["0", "7:30", "23:59:00", "24"], ["00", "07", " 23 ", "noon"]])
@pytest.mark.parametrize("days", [["2013-01-01"] * 4, [date(2013, 1, 1)] * 4])
def test_date_and_hour_in_two_columns_make_one_time(backend: str, hours: list[Any], days: list[Any]) -> None:
    from dpselect.tables.rows import with_hours

    rows = pyarrow.table({"user": list("abcd"), "at": days, "hr": hours, "kwh": [1.0] * 4})
    table = with_hours(open_source(rows, backend=backend), date="at", hour="hr")
    totals = bounded_query(table, asked(), Calendar("2013-01-01", "2013-01-02", every="hour")).totals
    assert [hour for hour, total in enumerate(totals) if total] == [0, 7, 23]


@pytest.mark.parametrize("every", ["day", "hour"])
def test_duckdb_reads_by_itself_only_what_the_patterns_read(every):
    """Its own casts take many more texts: each is a right one with a few signs changed."""
    chance = random.Random(every)

    def changed(text: str) -> str:
        signs = list(text)
        for _ in range(chance.randint(0, 3)):
            place = chance.randrange(len(signs) + 1)
            signs[place : place + chance.randint(0, 1)] = [chance.choice(" 01239T-/:.+Z_e,ADBC()\t")][
                : chance.randint(0, 1)
            ]
        return "".join(signs)

    times = ["2013-02-28 23:59:59", "2012-02-29", "1999-12-31T00:30", "0999-01-01 00:00:00", "9999-12-31 23:59:59.9"]
    times += ["12013-01-31 00:00:00", "infinity", "-infinity", "epoch", "2013-01-1  00:00:00", "2013-01-01  0:00:00"]
    numbers = ["12.5", "0.125", "1e5", ".5", "7.", "nan", "inf", "1_000", "9" * 60, "9" * 61, "9" * 119 + ".5"]
    at = [*times, *(changed(chance.choice(times)) for _ in range(3000))]
    value = [*numbers, *(changed(chance.choice(numbers)) for _ in range(len(at) - len(numbers)))]
    rows = pyarrow.table({"row": list(range(len(at))), "at": at, "kwh": value})
    question = Question(user="row", time="at", value="kwh", cap=10, population=5)
    calendar = Calendar("1000-01-01", "1000-01-02", every=every)

    def read(backend: str) -> list[tuple]:
        described = described_rows(open_source(rows, backend=backend), question, calendar).order_by("person")
        return described.select("key", "reading").to_pyarrow().to_pylist()

    for text, ours, peer in zip(zip(at, value, strict=True), read("duckdb"), read("polars"), strict=True):
        assert ours == peer, text


def test_columns_called_like_those_that_are_added_on_the_way_are_kept_apart(tmp_path):
    (tmp_path / "r.csv").write_text("Moment,at,WRITTEN\na,2013-01-01 10:00,1.5\nb,2013-01-02,2\n")
    question = Question(user="Moment", time="at", value="WRITTEN", cap=10, grid=10, population=9)
    assert bounded_query(tmp_path / "r.csv", question, DAYS).totals == (2, 2, 0)
