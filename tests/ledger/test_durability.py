"""What a ledger asks of its database and its entries: nothing is answered before it is on disk."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from dpselect.errors import InvalidParameter, LedgerError
from dpselect.ledger import Ledger, Total
from dpselect.ledger.amounts import Amounts
from dpselect.ledger.answer_log import AnswerLog
from dpselect.ledger.records import check_within


def asked(ledger: Ledger, statement: str) -> Any:
    return ledger._database.read(lambda connection: connection.exec_driver_sql(statement).scalar())


def test_sqlite_writes_to_disk_before_it_returns(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "homes.ledger", dataset="homes", total=Total.pure(1.0)) as ledger:
        assert asked(ledger, "PRAGMA synchronous") == 2, "FULL: the log is flushed at every commit"
        assert asked(ledger, "PRAGMA journal_mode") == "wal"


def test_postgresql_writes_to_disk_before_it_returns_whatever_the_server_is_set_to(fresh_schema: Any) -> None:
    url = make_url(fresh_schema())
    lazy = url.update_query_dict({"options": f"{url.query['options']} -csynchronous_commit=off"})
    place = lazy.render_as_string(hide_password=False)
    with Ledger.create(place, dataset="homes", total=Total.pure(1.0)) as ledger:
        assert asked(ledger, "SHOW synchronous_commit") == "on"


def test_a_file_that_goes_between_two_looks_is_an_error_and_not_an_empty_ledger(tmp_path: Path) -> None:
    place = tmp_path / "homes.ledger"
    with Ledger.create(place, dataset="homes", total=Total.pure(1.0)) as ledger:
        ledger._database._engine.dispose()
        place.unlink()
        with pytest.raises(sqlite3.OperationalError, match="unable to open"):
            ledger._database._engine.raw_connection()
        assert not place.exists()
        with pytest.raises(LedgerError):
            ledger.balance()


def test_a_cost_below_nothing_is_not_settled(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "homes.ledger", dataset="homes", total=Total.pure(1.0)) as ledger:
        held = ledger.reserve({"verb": "peak"}, cost=0.5)
        for wrong in (Amounts(epsilon=-1), Amounts(delta=-1), Amounts(rho=-1)):
            with pytest.raises(InvalidParameter, match="at most what was reserved"):
                check_within(wrong, held)


@pytest.mark.parametrize("count", [1, 4, 9, 300])
def test_answers_drawn_at_once_take_as_many_characters_whatever_they_are(count: int) -> None:
    lengths = set()
    for above in (lambda place: False, lambda place: True, lambda place: place == 0, lambda place: place == count - 1):
        answers = AnswerLog()
        for place in range(count):
            answers.add(above(place), None)
        bits = answers.as_bits()
        lengths.add(len(bits["bits"]))
        again = AnswerLog()
        again.restore(bits)
        assert [again.at(place, None) for place in range(count)] == [above(place) for place in range(count)]
    assert len(lengths) == 1


def test_an_answer_that_comes_while_others_are_written_is_still_to_be_written() -> None:
    answers = AnswerLog()
    answers.add(True, "mon")
    first = answers.read()
    answers.add(False, "tue")
    answers.kept()
    assert (first["count"], answers.fresh, len(answers)) == (1, 1, 2)
    assert answers.read()["first"] == 1
