"""Reserve, release, settle: what is charged when, what is asked once, and what is never written."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from dpselect.errors import BudgetExhausted, InvalidData, InvalidParameter, LedgerError
from dpselect.ledger import Amounts, Ledger, Total, database
from dpselect.ledger.history import history
from dpselect.privacy.loss import Loss

TOTALS = {
    "pure": (Total.pure(1.0), lambda cost: cost),
    "approximate": (Total.approximate(1.0, delta=1e-6), lambda cost: Loss(epsilon=cost, delta=1e-9)),
    "zcdp": (Total.zcdp(1.0, delta=1e-6), lambda cost: cost),
}


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries()]


class TestAsking:
    def test_the_cost_is_charged_before_data_is_touched(self, ledger: Ledger, place: str) -> None:
        def draw() -> str:
            with Ledger.open(place, who="bob") as other:
                assert other.balance().spent == 0.25
            return "2013-01-20"

        assert ledger.ask({"verb": "peak"}, cost=0.25, draw=draw).answer == "2013-01-20"
        assert kinds(ledger) == ["create", "reserve", "settle"]
        assert ledger.verify().holds

    def test_what_does_not_fit_is_refused_and_nothing_is_drawn_or_written(self, ledger: Ledger) -> None:
        ledger.ask({"question": 1}, cost=0.75, draw=lambda: "a")
        before = ledger.balance()
        with pytest.raises(BudgetExhausted) as refused:
            ledger.ask({"question": 2}, cost=0.5, draw=lambda: pytest.fail("data was touched"))
        assert (refused.value.spent, refused.value.budget, refused.value.next_cost) == (0.75, 1.0, 0.5)
        assert ledger.balance() == before
        ledger.ask({"question": 3}, cost=0.25, draw=lambda: "exactly the rest")
        assert ledger.balance().remaining == 0.0

    @pytest.mark.parametrize("kind", TOTALS)
    def test_every_kind_of_total_is_kept_to_the_last_unit(self, place: str, kind: str) -> None:
        total, cost_of = TOTALS[kind]
        with Ledger.create(place, dataset="homes", total=total) as ledger:
            for question in range(4):
                ledger.ask({"question": question}, cost=cost_of(0.25), draw=lambda: "x")
            assert ledger.balance().remaining == 0.0
            with pytest.raises(BudgetExhausted):
                ledger.ask({"question": "one more"}, cost=cost_of(1e-15), draw=lambda: "x")
            assert ledger.verify().holds

    def test_what_was_promised_with_a_delta_is_not_settled_at_less(self, place: str) -> None:
        """The proof takes realised losses of pure runs alone (Total.realised)."""
        with Ledger.create(place, dataset="homes", total=Total.approximate(1.0, delta=1e-6)) as ledger:
            held = ledger.reserve({"question": 1}, cost=Loss(epsilon=0.5, delta=5e-7))
            ledger.settle(held, "x", cost=0.125)
            assert ledger.balance().charged == ledger.total.price(Loss(epsilon=0.5, delta=5e-7))
            ledger.settle(ledger.reserve({"question": 2}, cost=0.25), "x", cost=0.125)
            assert ledger.balance().spent == 0.625

    def test_deltas_are_counted_of_their_own(self, place: str) -> None:
        with Ledger.create(place, dataset="homes", total=Total.approximate(9.0, delta=1e-6)) as ledger:
            ledger.ask({"question": 1}, cost=Loss(epsilon=0.1, delta=6e-7), draw=lambda: "x")
            with pytest.raises(BudgetExhausted, match=r"with δ = 6e-7 of 9 with δ = 0\.000001 is charged"):
                ledger.ask({"question": 2}, cost=Loss(epsilon=0.1, delta=6e-7), draw=lambda: "x")
            ledger.ask({"question": 3}, cost=Loss(epsilon=0.1, delta=3e-7), draw=lambda: "x")

    def test_an_answer_may_be_settled_below_its_reservation_and_never_above(self, ledger: Ledger) -> None:
        held = ledger.reserve({"verb": "watch"}, cost=0.5)
        with pytest.raises(InvalidParameter, match="at most what was reserved"):
            ledger.settle(held, "⊥", cost=0.75)
        assert ledger.balance().spent == 0.5
        ledger.settle(ledger.reserve({"verb": "watch"}, cost=0.5, afresh=True), "⊥", cost=0.125)
        assert ledger.balance().spent == 0.625
        assert ledger.verify().holds

    def test_a_declared_cost_does_not_come_back(self, place: str) -> None:
        with Ledger.create(place, dataset="homes", total=Total.zcdp(1.0, delta=1e-6)) as ledger:
            held = ledger.reserve({"verb": "watch"}, cost=0.5)
            ledger.settle(held, "⊥", cost=0.125)
            assert ledger.balance().spent == 0.5

    @pytest.mark.parametrize("failure", [InvalidData("a value is not a number"), RuntimeError(), SystemExit()])
    def test_a_failure_while_drawing_stays_charged_and_nothing_is_drawn_again(
        self, ledger: Ledger, place: str, failure: BaseException
    ) -> None:
        """Whether the draw fails may depend on the noise: each one that is seen must be paid for."""

        def fail() -> Any:
            raise failure

        with pytest.raises(type(failure)):
            ledger.ask({"question": 1}, cost=0.25, draw=fail)
        assert ledger.holding is not None
        assert ledger.holding.lost
        with Ledger.open(place) as later, pytest.raises(InvalidParameter, match=r"lost.*afresh.*pay again") as refused:
            later.ask({"question": 1}, cost=0.25, draw=lambda: pytest.fail("drawn again for nothing"))
        assert "\n" not in str(refused.value)
        assert ledger.balance().spent == 0.25
        for paid in ({"afresh": True}, {"key": "second"}):
            assert ledger.ask({"question": 1}, cost=0.25, draw=lambda: "now", **paid).answer == "now"
        assert ledger.balance().spent == 0.75
        assert [one.state for one in history(ledger)] == ["lost", "settled", "settled"]
        assert ledger.verify().holds

    @pytest.mark.parametrize("answer", ["/login", math.nan, "x" * 70000, object()])
    def test_a_drawn_answer_that_cannot_be_written_is_lost(self, ledger: Ledger, answer: Any) -> None:
        """A refusal that depends on the answer tells of it, so asking until it is not refused must not be free."""
        with pytest.raises(InvalidParameter):
            ledger.ask({"question": 1}, cost=0.25, draw=lambda: answer)
        with pytest.raises(InvalidParameter, match="lost"):
            ledger.ask({"question": 1}, cost=0.25, draw=lambda: pytest.fail("drawn again for nothing"))
        held = ledger.reserve({"question": 2}, cost=0.25)
        with pytest.raises(InvalidParameter):
            ledger.settle(held, answer)
        with pytest.raises(InvalidParameter, match="lost"):
            ledger.settle(held, "another draw")
        held = ledger.reserve({"question": 3}, cost=0.25)
        with pytest.raises(InvalidParameter, match="reserved"):
            ledger.settle(held, "x", cost=0.5)
        with pytest.raises(InvalidParameter, match="lost"):
            ledger.settle(held, "another draw")
        assert ledger.balance().spent == 0.75
        assert ledger.verify().holds

    @pytest.mark.parametrize("where", ["read", "interrupted"])
    def test_a_failure_before_the_noise_or_from_outside_stays_charged_and_asking_again_is_free(
        self, ledger: Ledger, where: str
    ) -> None:
        def fail() -> Any:
            raise RuntimeError if where == "read" else KeyboardInterrupt

        options = {"read": fail, "draw": lambda: pytest.fail("drawn")} if where == "read" else {"draw": fail}
        with pytest.raises((RuntimeError, KeyboardInterrupt)):
            ledger.ask({"question": 1}, cost=0.5, **options)
        assert ledger.balance().spent == 0.5
        assert ledger.holding is not None
        assert not ledger.holding.lost
        assert ledger.ask({"question": 1}, cost=0.5, draw=lambda: "now").answer == "now"
        assert ledger.balance().spent == 0.5
        assert ledger.verify().holds

    def test_a_retired_data_set_answers_no_more(self, ledger: Ledger) -> None:
        held = ledger.reserve({"question": 1}, cost=0.25)
        ledger.retire("the study is over")
        ledger.retire()
        with pytest.raises(LedgerError, match="retired"):
            ledger.ask({"question": 2}, cost=0.1, draw=lambda: pytest.fail("data was touched"))
        ledger.settle(held, "was under way", cost=0.125)
        with pytest.raises(LedgerError, match="retired"):
            ledger.reserve({"question": 2}, cost=0.1)
        assert ledger.balance().remaining == 0.0
        assert ledger.verify().holds


class TestSameQuestion:
    def test_it_finds_the_first_answer_and_spends_nothing(self, ledger: Ledger, place: str) -> None:
        drawn: list[str] = []  # told so, since a draw that fails finds the answer that stands
        first = ledger.ask({"verb": "peak", "epsilon": 0.4}, cost=0.4, draw=lambda: {"label": "monday"})
        with Ledger.open(place) as later:
            again = later.ask({"epsilon": 0.4, "verb": "peak"}, cost=0.4, draw=lambda: drawn.append("twice"))
        assert drawn == []
        assert (again.answer, again.number, again.repeated) == (first.answer, first.number, True)
        assert not first.repeated
        assert len(kinds(ledger)) == 3

    def test_after_a_crash_it_carries_on_with_its_reservation(self, ledger: Ledger) -> None:
        crashed = ledger.reserve({"verb": "peak"}, cost=0.75)
        answered = ledger.ask({"verb": "peak"}, cost=0.75, draw=lambda: "monday")
        assert answered.number == crashed.number
        assert ledger.balance().spent == 0.75

    def test_of_two_at_the_same_time_one_answer_stands(self, ledger: Ledger, place: str) -> None:
        slow = ledger.reserve({"verb": "peak"}, cost=0.75)
        with Ledger.open(place) as quick:
            assert quick.ask({"verb": "peak"}, cost=0.75, draw=lambda: "monday").answer == "monday"
        late = ledger.settle(slow, "tuesday")
        assert (late.answer, late.repeated) == ("monday", True)

    def test_of_two_at_the_same_time_one_loss_stands(self, ledger: Ledger, place: str) -> None:
        slow = ledger.reserve({"verb": "peak"}, cost=0.75)
        with Ledger.open(place) as quick, pytest.raises(InvalidParameter):
            quick.ask({"verb": "peak"}, cost=0.75, draw=lambda: "/login")
        with pytest.raises(InvalidParameter, match="lost"):
            ledger.settle(slow, "tuesday")

    def test_afresh_or_with_another_key_it_is_paid_again(self, ledger: Ledger) -> None:
        for options in ({}, {"afresh": True}, {"key": "second"}):
            ledger.ask({"verb": "peak"}, cost=0.25, draw=lambda: "x", **options)
        assert ledger.balance().spent == 0.75
        assert ledger.ask({"verb": "peak"}, cost=0.25, draw=lambda: "y", key="second").repeated

    def test_it_cannot_cost_more_than_it_reserved(self, ledger: Ledger) -> None:
        ledger.reserve({"verb": "peak"}, cost=0.25)
        with pytest.raises(InvalidParameter, match="same question"):
            ledger.reserve({"verb": "peak"}, cost=0.5)


def test_a_question_is_as_quick_after_thousands_as_before(tmp_path: Path) -> None:
    """No statement looks at all entries: the plans name an index with everything that is asked for."""
    import sqlite3

    from dpselect.ledger.book import _STATEMENTS

    Ledger.create(tmp_path / "x.ledger", dataset="homes", total=Total.pure(1.0)).close()
    connection = sqlite3.connect(tmp_path / "x.ledger")
    for name, statement in _STATEMENTS.items():
        values = ("1",) * statement.count("?")
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        searched = [step for step in plan if "SEARCH" in step or "SCAN" in step]
        if name == "last":
            assert searched[0].endswith("PRIMARY KEY (dataset=?)"), "from the end, and no further than the first"
            searched = searched[1:]
        for step in searched:
            assert step.count("=?") >= 2, (name, step)
    connection.close()


class TestOpening:
    def test_a_ledger_that_is_not_there_is_refused_and_not_made(self, tmp_path: Path) -> None:
        with pytest.raises(LedgerError, match="made once, with its total"):
            Ledger.open(tmp_path / "gone.ledger")
        assert not list(tmp_path.iterdir())

    def test_a_total_is_chosen_once(self, ledger: Ledger, place: str) -> None:
        with pytest.raises(LedgerError, match="chosen once"):
            Ledger.create(place, dataset="homes", total=Total.pure(100.0))
        assert ledger.total == Total.pure(1.0)

    def test_data_sets_share_a_database_and_nothing_else(self, ledger: Ledger, place: str) -> None:
        with Ledger.create(place, dataset="bikes", total=Total.zcdp(0.5, delta=1e-6)) as bikes:
            bikes.ask({"verb": "peak"}, cost=0.5, draw=lambda: "x")
            assert ledger.balance().spent == 0.0
            assert bikes.verify().holds
        assert Ledger.datasets(place) == ("homes", "bikes")
        with pytest.raises(LedgerError, match="must be named"):
            Ledger.open(place)
        with pytest.raises(LedgerError, match="not among them"):
            Ledger.open(place, dataset="cars")
        with Ledger.open(place, dataset="bikes") as again:
            assert again.total == Total.zcdp(0.5, delta=1e-6)

    def test_its_files_are_its_owners_alone(self, tmp_path: Path) -> None:
        old = os.umask(0)
        try:
            with Ledger.create(tmp_path / "x.ledger", dataset="homes", total=Total.pure(1.0)) as made:
                made.ask({"question": 1}, cost=0.1, draw=lambda: "x")
                modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        finally:
            os.umask(old)
        assert set(modes) == {"x.ledger", "x.ledger-wal", "x.ledger-shm"}
        assert set(modes.values()) == {0o600}
        (tmp_path / "x.ledger").chmod(0o640)
        with pytest.raises(LedgerError, match="chmod 600"):
            Ledger.open(tmp_path / "x.ledger")

    @pytest.mark.parametrize("place", ["mysql://ann:secret@host/db", "sqlite://", "what://is this", "://"])
    def test_a_place_that_is_none_is_refused_without_repeating_it(self, place: str) -> None:
        with pytest.raises(InvalidParameter) as refused:
            Ledger.open(place)
        assert "secret" not in str(refused.value)

    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    def test_a_forked_child_must_open_it_again(self, tmp_path: Path) -> None:
        parent = os.getpid()
        with Ledger.create(tmp_path / "x.ledger", dataset="homes", total=Total.pure(1.0)) as made:
            for number in (os.getpid, lambda: parent):  # its own, or its parent's in a process namespace of its own
                child = os.fork()
                if child == 0:
                    database.process = number
                    try:
                        made.reserve({"question": 1}, cost=0.1)
                    except LedgerError:
                        os._exit(0)
                    os._exit(1)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert made.balance().spent == 0


@pytest.mark.parametrize("nonsense", [None, 3, "x", [1], object()])
def test_what_is_no_function_is_refused_before_anything_is_charged(ledger: Ledger, nonsense: Any) -> None:
    with pytest.raises(InvalidParameter, match="draw must be a function"):
        ledger.ask({"verb": "peak"}, cost=0.1, draw=nonsense)
    assert ledger.balance().spent == 0.0
    if nonsense is not None:
        with pytest.raises(InvalidParameter, match="read must be a function"):
            ledger.ask({"verb": "peak"}, cost=0.1, draw=lambda: "x", read=nonsense)
        for refused in (lambda: ledger.settle(nonsense, "x"), lambda: ledger.lose(nonsense)):
            with pytest.raises(InvalidParameter, match="reservation must be what reserve gave back"):
                refused()
    assert ledger.balance().spent == 0.0


class TestWhatIsWritten:
    @pytest.mark.parametrize(
        "told",
        [
            "/home/ann/patients.csv",
            "~/patients.csv",
            "./data/patients.csv",
            "..\\patients.csv",
            "C:\\data\\patients.csv",
            "\\\\server\\share",
            "postgresql://ann:secret@host/db",
            "see s3://bucket/patients",
            "rows of /home/ann/patients.csv",
            "source=~/patients.csv",
            "rows (../ann/patients.csv)",
            'the file "C:\\data\\patients.csv"',
        ],
    )
    def test_places_are_refused_and_not_repeated(self, ledger: Ledger, told: str) -> None:
        for question in ({"table": told}, {"tables": [1, told]}, {told: 1}):
            with pytest.raises(InvalidParameter) as refused:
                ledger.reserve(question, cost=0.1)
            assert told not in str(refused.value)
        held = ledger.reserve({"question": 1}, cost=0.1)
        with pytest.raises(InvalidParameter):
            ledger.settle(held, {"saved": told})

    def test_ordinary_words_with_strokes_are_not_places(self, ledger: Ledger) -> None:
        for word in ("kWh/day", "2013/01/20", "a: b", "either/or", "50 %", "and / or", "trips: 1/2", "wh /day"):
            assert ledger.ask({"label": word}, cost=0.01, draw=lambda word=word: word).answer == word

    @pytest.mark.parametrize("answer", [math.nan, math.inf, object(), {1: 2}, b"x", {"x": {1, 2}}, "x" * 70000])
    def test_only_plain_finite_values_are_written(self, ledger: Ledger, answer: Any) -> None:
        with pytest.raises(InvalidParameter):
            ledger.settle(ledger.reserve({"question": 1}, cost=0.25), answer)
        assert ledger.balance().spent == 0.25, "which stays charged"

    def test_an_entry_says_who_when_what_and_how_much(self, ledger: Ledger) -> None:
        ledger.ask({"mechanism": "gaussian", "sigma": 0.1}, cost=0.25, draw=lambda: {"label": "monday"})
        _, reserved, settled = ledger.entries()
        assert reserved.who == settled.who == "ann"
        assert reserved.at.endswith("+00:00")
        assert reserved.content == {"mechanism": "gaussian", "sigma": 0.1}
        assert settled.content == {"answer": {"label": "monday"}}
        assert settled.amounts == Amounts(epsilon=250_000_000_000_000)

    @pytest.mark.parametrize("who", ["", " ann", "a\nb", "x" * 300, "/etc/passwd", 3])
    def test_a_name_is_a_name(self, ledger: Ledger, place: str, who: Any) -> None:
        with pytest.raises(InvalidParameter):
            Ledger.open(place, who=who)
