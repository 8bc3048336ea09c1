"""A ledger and a data-set file of the version before open, answer known questions free, and go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

import dpselect as dp
from dpselect.errors import InvalidParameter, LedgerError
from dpselect.ledger import Ledger, PrivacyUnit, Total
from dpselect.ledger.database import Database

#: The last entry of version_3.sql.
ANCHOR = "18:abcd45784d0dfc70033843cb6108fb2368806b8e8efde2259b42b45680205a8b"
#: As that version wrote it: without an anchor.
FILE = """rows = "readings.csv"
user = "meter"
time = "at"
value = "kwh"
cap = 10
cap_every = "day"
population = 20
start = "2013-01-01"
end = "2013-01-31"
ledger = "$OLD_LEDGER"
total = 500
"""
#: The thresholds of two watches: the first was interrupted, the second killed.
INTERRUPTED, KILLED = 3, 4


@pytest.fixture
def homes(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data-set file, beside its rows, and the ledger in a file or on a server."""
    written = Path(__file__).with_name("version_3.sql").read_text(encoding="utf-8")
    database = Database(place, create=True)
    sqlite = database.dialect == "sqlite"
    written = written.replace("{serial}", "INTEGER NOT NULL" if sqlite else "SERIAL NOT NULL")
    written = written.replace("{without_rowid}", "WITHOUT ROWID" if sqlite else "")

    def work(connection: Connection, _: int) -> None:
        for statement in written.partition("\n")[2].split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)

    database.write(work, lock=1)
    database.close()
    lines = [
        f"m{home},2013-01-{day:02},{9 if day == 20 else 5 if day in (3, 7, 25) else 1}"
        for home in range(20)
        for day in range(1, 32)
    ]
    (tmp_path / "readings.csv").write_text("meter,at,kwh\n" + "\n".join(lines) + "\n")
    monkeypatch.setenv("OLD_LEDGER", place)
    (tmp_path / "homes.toml").write_text(FILE)
    return tmp_path / "homes.toml"


@pytest.fixture
def opened(homes: Path) -> Iterator[dp.Dataset]:
    found = dp.Dataset.open(homes)
    yield found
    assert found.book is not None
    assert found.book.verify(anchor=ANCHOR).holds
    found.book.close()


def test_a_known_question_is_answered_free(opened: dp.Dataset) -> None:
    before = opened.spent
    peak = opened.peak(epsilon=50)
    assert (peak.label, peak.entry, peak.repeated) == ("2013-01-20", 2, True)
    assert opened.spent == before == pytest.approx(113.728393183223)
    assert opened.book is not None
    assert opened.book.balance().anchor.number == 18, "nothing was written"


@pytest.mark.parametrize(("threshold", "known"), [(INTERRUPTED, 12), (KILLED, 7)])
def test_a_watch_goes_on_where_its_answers_end(opened: dp.Dataset, threshold: int, known: int) -> None:
    watch = opened.watch(threshold, budget=60, mechanism="exponential")
    assert watch.repeats == known
    assert [place for place in watch.above if place < known] == [2, 6], "as they were answered then"
    assert watch.answered == 31 or watch.ended
    assert opened.spent <= 113.73 + 60


def test_the_first_charge_says_whose_privacy_is_counted(opened: dp.Dataset, homes: Path, place: str) -> None:
    assert opened.book is not None
    assert opened.book.unit() is None
    opened.peak(epsilon=50, every="week")
    assert opened.book.unit() == PrivacyUnit(user="meter", adjacency="add-remove")
    homes.write_text(FILE.replace('user = "meter"', 'user = "at"'))
    with pytest.raises(InvalidParameter, match="'meter'"):
        dp.Dataset.open(homes).peak(epsilon=50, every="week")


def test_a_file_takes_up_the_anchor_of_its_data_set(homes: Path, place: str) -> None:
    """What the docs say to write into an old file: from then on a copy pays the same, and another ledger is refused."""
    with Ledger.open(place) as ledger:
        named = str(ledger.identity)
        assert not ledger.marked
    homes.with_name("shops.toml").write_text(FILE + f'anchor = "{named}"\n')
    Ledger.create(place, dataset="shops", total=Total.pure(500)).close()
    shops = dp.Dataset.open(homes.with_name("shops.toml"))
    assert shops.peak(epsilon=50).repeated
    with pytest.warns(dp.DPSelectWarning, match="the name of the file decides that the data set 'homes' pays"):
        assert dp.Dataset.open(homes).peak(epsilon=50).repeated
    homes.rename(homes.with_name("shops.toml"))
    with pytest.raises(LedgerError, match="several data sets"):
        dp.Dataset.open(homes.with_name("shops.toml")).peak(epsilon=50)
