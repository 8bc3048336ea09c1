"""Questions that fail after their charge: given back where no row can have played a part, and only there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.conftest import FACTS, JANUARY

from dpselect.dataset import rows
from dpselect.errors import InvalidParameter, SourceError
from dpselect.ledger import Ledger, Total, filter_on
from dpselect.ledger.history import history

VERBS = {
    "peak": ("peak", "--epsilon", 60, "--anyway"),
    "watch": ("watch", "--threshold", 25, "--budget", 60, "--anyway", "--mechanism", "exponential"),
    "all at once": ("watch", "--threshold", 25, "--budget", 60, "--anyway", "--mechanism", "set"),
}


def charged(place: Path) -> float:
    with Ledger.open(place) as ledger:
        assert ledger.verify().holds
        return ledger.balance().spent


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Does something once, after the columns were looked for and before the rows are read."""

    def arrange(deed: Callable[[], object]) -> None:
        check, done = rows.check, list[bool]()

        def then(scope: Any) -> None:
            check(scope)
            if not done:
                done.append(True)
                deed()

        monkeypatch.setattr(rows, "check", then)

    return arrange


@pytest.mark.parametrize("verb", VERBS)
class TestTable:
    def test_a_file_that_is_gone_is_not_paid_for(
        self,
        dpselect: Callable[..., Any],
        describe: Callable[..., Path],
        readings: Path,
        between: Callable[..., None],
        verb: str,
    ) -> None:
        homes = describe()
        name, *options = VERBS[verb]
        between(lambda: readings.rename(readings.with_suffix(".away")))
        ran = dpselect(name, homes, *options)
        assert (ran.code, ran.out) == (2, "")
        assert "no file matches" in ran.err
        assert "nothing was spent" in ran.err
        assert charged(homes.with_suffix(".ledger")) == 0.0
        readings.with_suffix(".away").rename(readings)
        assert dpselect(name, homes, *options).code in (0, 3)
        assert 0.0 < charged(homes.with_suffix(".ledger")) <= 60.0

    def test_a_table_of_a_server_that_is_gone_is_not_paid_for(
        self, dpselect: Callable[..., Any], postgres: Any, tmp_path: Path, between: Callable[..., None], verb: str
    ) -> None:
        postgres.run(
            "DROP TABLE IF EXISTS attacked, away",
            "CREATE TABLE attacked (meter text, at timestamp, kwh double precision)",
            "INSERT INTO attacked SELECT 'm' || m, timestamp '2013-01-01' + d * interval '1 day', 1 + d % 7 "
            "FROM generate_series(1, 20) m, generate_series(0, 30) d",
        )
        ledger = tmp_path / "homes.ledger"
        Ledger.create(ledger, dataset="homes", total=Total.pure(100)).close()
        name, *options = VERBS[verb]
        asked = (name, postgres.url("meters"), "--table", "attacked", *FACTS, *JANUARY, *options, "--ledger", ledger)
        between(lambda: postgres.run("ALTER TABLE attacked RENAME TO away"))
        ran = dpselect(*asked)
        assert (ran.code, ran.out) == (2, "")
        assert "nothing was spent" in ran.err
        assert charged(ledger) == 0.0
        postgres.run("ALTER TABLE away RENAME TO attacked")
        assert dpselect(*asked).code in (0, 3)
        assert 0.0 < charged(ledger) <= 60.0

    def test_a_failure_that_may_come_of_rows_stays_charged(
        self,
        dpselect: Callable[..., Any],
        describe: Callable[..., Path],
        readings: Path,
        between: Callable[..., None],
        monkeypatch: pytest.MonkeyPatch,
        verb: str,
    ) -> None:
        """Else whoever can put one row into the table reads, free and without noise, whether it is there."""
        homes, ledger = describe(), readings.parent / "homes.ledger"
        name, *options = VERBS[verb]

        def fail(*_: object, **__: object) -> Any:
            raise SourceError("a time cannot be placed")

        with monkeypatch.context() as broken:
            broken.setattr(rows, "read", fail)
            ran = dpselect(name, homes, *options)
        assert (ran.code, ran.out) == (2, "")
        assert "the ledger holds" in ran.err
        assert "until it is asked again" in ran.err
        held = charged(ledger)
        assert held > 0.0
        # A harmless failure afterwards does not give back what the other one was charged.
        between(lambda: readings.rename(readings.with_suffix(".away")))
        assert dpselect(name, homes, *options).code == 2
        readings.with_suffix(".away").rename(readings)
        assert charged(ledger) == held
        assert dpselect(name, homes, *options).code in (0, 3)
        assert 0.0 < charged(ledger) <= 60.0, "and the answer is paid once"


class TestByHand:
    @pytest.fixture
    def held(
        self, dpselect: Callable[..., Any], describe: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
    ) -> Path:
        """A data-set file with a wrong fact, under which a question failed and stays charged."""

        def fail(*_: object, **__: object) -> Any:
            raise SourceError("a time cannot be placed")

        homes = describe()
        with monkeypatch.context() as broken:
            broken.setattr(rows, "read", fail)
            assert dpselect(*VERBS["peak"][:1], homes, *VERBS["peak"][1:]).code == 2
        return homes

    def test_the_curator_releases_it_and_mends_the_fact(self, dpselect: Callable[..., Any], held: Path) -> None:
        mend = ("describe", held, "--write", held, "--cap", 40)
        assert "has charges" in dpselect(*mend).err
        assert dpselect("ledger", "history", held, "--json").json["state"] == "reserved"
        ran = dpselect("ledger", "release", held, "--entry", 2, "--reason", "the time format was wrong")
        assert ran.code == 0, ran.err
        assert charged(held.with_suffix(".ledger")) == 0.0
        asked = dpselect("ledger", "history", held, "--json").json
        assert (asked["state"], asked["cost"]) == ("released", 0.0)
        assert "(released)" in dpselect("ledger", "history", held).out
        assert dpselect(*mend).code == 0
        assert dpselect("peak", held, *VERBS["peak"][1:]).code == 0
        assert 0.0 < charged(held.with_suffix(".ledger")) <= 60.0

    def test_the_same_question_is_charged_again(self, dpselect: Callable[..., Any], held: Path) -> None:
        assert dpselect("ledger", "release", held, "--entry", 2, "--reason", "gone").code == 0
        first = dpselect("peak", held, *VERBS["peak"][1:], "--json").json
        assert not first["repeated"]
        assert 0.0 < charged(held.with_suffix(".ledger")) <= 60.0
        again = dpselect("peak", held, *VERBS["peak"][1:], "--json").json
        assert (again["repeated"], again["answer"]) == (True, first["answer"])

    @pytest.mark.parametrize("options", [(), ("--entry", 2), ("--reason", "x"), ("--entry", 9, "--reason", "x")])
    def test_it_says_what_is_missing(
        self, dpselect: Callable[..., Any], held: Path, options: tuple[object, ...]
    ) -> None:
        assert dpselect("ledger", "release", held, *options).code == 2
        assert charged(held.with_suffix(".ledger")) > 0.0

    def test_what_has_an_answer_stays_charged(self, place: str) -> None:
        with Ledger.create(place, dataset="homes", total=Total.pure(1)) as ledger:
            number = ledger.ask({"question": 1}, cost=0.25, draw=lambda: "x").number
            with pytest.raises(RuntimeError):
                ledger.ask({"question": 2}, cost=0.25, draw=lambda: (_ for _ in ()).throw(RuntimeError))
            lost = history(ledger)[1].number
            stream = filter_on(ledger, question={"verb": "watch"}, stretch=0.25)
            stream.charge(0.125)
            stretch = history(ledger)[2].number
            for entry in (1, number, number + 1, lost, stretch):
                with pytest.raises(InvalidParameter, match="entry"):
                    ledger.release(entry, reason="x")
            assert ledger.balance().spent == 0.75
            stream.close()

    def test_an_answer_that_is_being_drawn_is_not_shown_after_it(self, place: str) -> None:
        with Ledger.create(place, dataset="homes", total=Total.pure(1)) as ledger:

            def draw() -> str:
                ledger.release(2, reason="it hangs")
                return "never shown"

            with pytest.raises(InvalidParameter, match="was released while it was asked"):
                ledger.ask({"question": 1}, cost=0.25, draw=draw)
            assert ledger.balance().spent == 0.0
            assert ledger.ask({"question": 1}, cost=0.25, draw=lambda: "x").answer == "x"
            assert ledger.balance().spent == 0.25
            assert ledger.verify().holds


def test_threads_are_told_of_their_own_question(place: str) -> None:
    """What a failure says is held must be what this thread charged, not what another one did in the meantime."""
    with Ledger.create(place, dataset="homes", total=Total.pure(1)) as ledger:
        mine = ledger.reserve({"question": "mine"}, cost=0.25)

        def others() -> None:
            assert ledger.last is None
            ledger.ask({"question": "theirs"}, cost=0.25, draw=lambda: "x")

        thread = threading.Thread(target=others)
        thread.start()
        thread.join()
        assert ledger.last is not None
        assert ledger.last.number == mine.number
        assert ledger.holding is not None
