"""A watch on a ledger: charged stretch by stretch, found again by whoever asks the same, and gone on with."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from dpselect import Dataset, QueryFamily
from dpselect.composition.budgeted_run import BudgetedRun
from dpselect.composition.sparse_vector import SparseVector
from dpselect.dataset import WatchRequest, how_much, kept
from dpselect.dataset import rows as access
from dpselect.dataset.watch import Watch, WatchPlan, plan_watch
from dpselect.errors import BudgetExhausted, InvalidParameter, LedgerError
from dpselect.ledger import Ledger, Total
from dpselect.ledger.history import history
from dpselect.ledger.stretches import Stretches
from dpselect.mechanisms.run import Verdict
from dpselect.noise.entropy import SYSTEM_ENTROPY
from dpselect.planning import Job, Plan
from dpselect.planning.ways import Rationed
from dpselect.privacy.loss import Loss
from dpselect.rounding import at_most

POSTGRESQL_IS_SLOW = True
DAYS = [f"2013-01-{day:02}" for day in range(1, 32)]
FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-4)
VALUES = [0.1, 0.2, 0.95, 0.1, 0.15, 0.9, 0.05, 0.3] * 5


@pytest.fixture
def homes(ledger: Ledger) -> Dataset:
    rows = pyarrow.table(
        {
            "meter": [f"m{meter}" for meter in range(20) for _ in DAYS],
            "at": DAYS * 20,
            "kwh": [40.0 if day % 5 == 0 else 5.0 for _ in range(20) for day in range(31)],
        }
    )
    return Dataset(rows, user="meter", time="at", value="kwh", cap=50, population=20, ledger=ledger)


@pytest.fixture
def one_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the noise, the first day is named."""
    ask = SparseVector.ask

    def first(self: SparseVector, value: Any) -> Verdict:
        number, found = self.questions, ask(self, value)
        return Verdict.ABOVE if number == 0 else found

    monkeypatch.setattr(SparseVector, "ask", first)


def interrupt() -> None:
    raise KeyboardInterrupt


def watch(homes: Dataset, **options: Any) -> Watch:
    # Gaussian noise by the plain rule, which many small charges go with.
    return homes.watch(threshold=25, budget=0.8, clip=(25, 25), start=DAYS[0], end=DAYS[-1], anyway=True, **options)


def stream(budget: float = 0.5) -> WatchPlan:
    line = WatchRequest(threshold=0.5, budget=budget, noise=(0.05, 0.08))
    return plan_watch(FAMILY, line, questions=40)


def answered(found: Watch, values: list[float]) -> list[bool]:
    answers = []
    for value in values:
        if not found.can_ask:
            break
        answers.append(found.ask(value))
    return answers


class TestTable:
    def test_no_stretch_holds_the_whole_budget_and_the_end_is_what_the_answers_cost(
        self, homes: Dataset, ledger: Ledger
    ) -> None:
        found = watch(homes)
        reserved = [entry for entry in ledger.entries() if entry.kind == "reserve"]
        assert len(reserved) > 3
        assert max(entry.amounts.epsilon for entry in reserved) < 0.4e15
        assert found.cost <= ledger.balance().spent <= found.cost + 1e-12 < 0.8
        assert ledger.verify().holds

    def test_asked_again_it_opens_no_table_and_spends_nothing(
        self, homes: Dataset, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, before = watch(homes), ledger.balance()
        monkeypatch.setattr(access, "read", lambda *_, **__: pytest.fail("data was touched"))
        again = watch(homes)
        assert (again.labels, again.answered, again.cost) == (first.labels, first.answered, first.cost)
        assert again.repeats == first.answered
        assert ledger.balance() == before
        told = " ".join(str(again).split())
        assert f"These answers were first given on {list(ledger.entries())[1].at[:10]}" in told
        assert "The rows may have changed since." in told
        assert "first given" not in str(first)

    def test_asked_again_on_other_grounds_it_shows_the_noise_it_was_drawn_with(
        self, homes: Dataset, ledger: Ledger
    ) -> None:
        def asked(**known: Any) -> Watch:
            asked: dict[str, Any] = {"threshold": 25, "budget": 0.8, "mechanism": "exponential", **known}
            return homes.watch(**asked, start=DAYS[0], end=DAYS[-1], anyway=True)

        def noise(found: Watch) -> dict[str, str]:
            return {name: text for name, text in found.as_report().parameters if name.startswith("Noise of")}

        first, again = asked(expect=2), asked(expect=15)
        assert first.plan.noise_entries() != again.plan.noise_entries(), "planned otherwise"
        assert noise(again) == noise(first)
        assert (again.labels, again.cost) == (first.labels, first.cost)
        assert "Expected" in dict(first.as_report().findings[0].details)
        assert "Expected" not in dict(again.as_report().findings[0].details), "that of a plan which is not run"
        assert "drawn with other noise" in " ".join(str(again).split())
        record = again.to_dict()
        assert record["drawn_before"].items() >= noise(first).items()
        assert not {"mechanism", "reason", "expected_f1"} & set(record)
        assert {"mechanism", "reason", "expected_f1"} <= set(first.to_dict())

    def test_with_another_key_or_afresh_it_is_paid_again(self, homes: Dataset, ledger: Ledger) -> None:
        spent = []
        for options in ({}, {"key": "second"}, {"afresh": True}):
            homes.watch(threshold=25, budget=0.25, clip=(25, 25), start=DAYS[0], end=DAYS[9], anyway=True, **options)
            spent.append(ledger.balance().spent)
        assert spent[0] < spent[1] < spent[2]

    def test_a_table_that_cannot_be_read_is_charged_once_and_the_watch_goes_on(
        self, homes: Dataset, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whether rows can be read may depend on one of them: that is not told for nothing."""
        held = set[float]()

        def fail(*_: Any, **__: Any) -> Any:
            assert ledger.balance().spent > 0, "charged before data is touched"
            raise OSError("the disk is gone")

        for _ in range(2):
            with monkeypatch.context() as patched:
                patched.setattr(access, "read", fail)
                with pytest.raises(OSError, match="gone") as failed:
                    watch(homes)
            (note,) = failed.value.__notes__
            assert note.startswith("no answer was drawn, and the ledger holds ε = ")
            held.add(ledger.balance().spent)
        assert len(held) == 1
        assert min(held) > 0
        found = watch(homes)
        assert found.answered > 10
        assert ledger.balance().spent == pytest.approx(sum(run.epsilon for run in found.run.vector.runs), rel=1e-9)

    @pytest.mark.parametrize("at", [0, 1, 4])
    def test_interrupted_it_keeps_what_was_drawn_and_says_so(
        self, homes: Dataset, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, at: int
    ) -> None:
        ask = SparseVector.ask

        def interrupt(self: SparseVector, value: Any) -> Any:
            if self.questions == at:
                raise KeyboardInterrupt
            return ask(self, value)

        with monkeypatch.context() as patched:
            patched.setattr(SparseVector, "ask", interrupt)
            with pytest.raises(KeyboardInterrupt) as stopped:
                watch(homes)
        (note,) = stopped.value.__notes__
        spent = ledger.balance().spent
        if at:
            have = "1 answer" if at == 1 else f"{at} answers"
            assert note.startswith(f"the ledger has {have}, which cost ε = {at_most(spent)}; asked again")
        else:
            assert (note, spent) == ("nothing was spent", 0)
        found = watch(homes)
        assert found.repeats == at
        assert ledger.balance().spent == pytest.approx(
            spent + sum(run.epsilon for run in found.run.vector.runs), rel=1e-9
        )
        assert all(one.state == "settled" for one in history(ledger))

    @pytest.mark.usefixtures("one_named")
    def test_values_are_drawn_once_and_charged_with_the_names(
        self, homes: Dataset, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        line: dict[str, Any] = {"threshold": 25, "budget": 0.8, "clip": (25, 25), "how_much": True}
        days = {"start": DAYS[0], "end": DAYS[-1], "anyway": True}
        with monkeypatch.context() as patched:
            patched.setattr(how_much, "draw", lambda *_, **__: interrupt())
            with pytest.raises(KeyboardInterrupt) as stopped:
                homes.watch(**line, **days)
        (note,) = stopped.value.__notes__
        assert note.endswith("; it holds ε = 0.4 for their values")
        held = ledger.balance().spent
        first = homes.watch(**line, **days)
        assert first.repeats == first.answered, "the names were there"
        assert ledger.balance().spent == held == pytest.approx(first.cost, rel=1e-9)
        assert first.count > 0
        assert first.cost <= 0.8
        again = homes.watch(**line, **days)
        assert (again.labels, again.amounts, again.cost) == (first.labels, first.amounts, first.cost)
        assert ledger.balance().spent == held
        assert ledger.verify().holds

    @pytest.mark.usefixtures("one_named")
    def test_a_failed_draw_of_values_is_lost_and_the_names_stand(
        self, homes: Dataset, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        line: dict[str, Any] = {"threshold": 25, "budget": 0.8, "clip": (25, 25), "how_much": True}
        monkeypatch.setattr(how_much, "draw", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError) as failed:
            homes.watch(**line, start=DAYS[0], end=DAYS[-1], anyway=True)
        assert "their values are lost and it keeps ε = 0.4" in failed.value.__notes__[0]
        with pytest.raises(InvalidParameter, match="was lost after its charge"):
            homes.watch(**line, start=DAYS[0], end=DAYS[-1], anyway=True)

    @pytest.mark.usefixtures("one_named")
    def test_values_that_others_left_no_room_for_are_not_given_and_the_names_are(
        self, homes: Dataset, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        line: dict[str, Any] = {"threshold": 25, "budget": 0.8, "clip": (25, 25), "how_much": True}
        settle = kept.KeptWatch.settle

        def others(self: kept.KeptWatch, *given: Any, **options: Any) -> None:
            settle(self, *given, **options)
            ledger.reserve({"question": "another"}, cost=ledger.balance().remaining - 0.1)

        monkeypatch.setattr(kept.KeptWatch, "settle", others)
        found = homes.watch(**line, start=DAYS[0], end=DAYS[-1], anyway=True)
        assert found.count > 0
        assert found.amounts is None
        assert "not given: others have used what was left" in " ".join(str(found).split())

    @pytest.mark.parametrize("at", [1, 9, 20])
    def test_after_a_crash_it_goes_on_from_what_the_ledger_has(
        self, homes: Dataset, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, at: int
    ) -> None:
        ask = SparseVector.ask

        def crash(self: SparseVector, value: Any) -> Any:
            if self.questions == at:
                raise MemoryError
            return ask(self, value)

        with monkeypatch.context() as patched:
            patched.setattr(SparseVector, "ask", crash)
            days = homes.candidates(start=DAYS[0], end=DAYS[-1])
            plan = homes.plan_watch(days, threshold=25, budget=0.8, clip=(25, 25))
            with pytest.raises(MemoryError):
                plan.ask(anyway=True)
        charged = ledger.balance().spent
        found = watch(homes)
        assert found.repeats <= at
        assert charged <= ledger.balance().spent <= 0.8
        assert watch(homes).labels == found.labels
        assert ledger.verify().holds

    @pytest.mark.parametrize("at", [0, 1, 9, 20])
    def test_killed_in_its_first_stretch_it_takes_that_up_and_later_the_stretch_stays_charged(
        self, homes: Dataset, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, at: int
    ) -> None:
        ask = SparseVector.ask

        def kill(self: SparseVector, value: Any) -> Any:
            if self.questions == at:
                raise KeyboardInterrupt
            return ask(self, value)

        with monkeypatch.context() as patched:
            patched.setattr(SparseVector, "ask", kill)
            patched.setattr(kept.KeptWatch, "give_up", lambda *_, **__: "a killed process says nothing")
            with pytest.raises(KeyboardInterrupt):
                watch(homes)
        charged = ledger.balance().spent
        assert charged > 0, "committed before data was touched"
        first = len([entry for entry in ledger.entries() if entry.kind == "reserve"]) == 1
        found = watch(homes)
        assert charged <= ledger.balance().spent + 1e-12 or first
        assert ledger.balance().spent == pytest.approx(found.cost, rel=1e-9)
        assert ("lost" in [one.state for one in history(ledger)]) != first
        assert ledger.verify().holds

    def test_after_a_failure_nothing_is_drawn_under_the_stretch_of_the_failed(
        self, homes: Dataset, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ask = SparseVector.ask

        def fail(self: SparseVector, value: Any) -> Any:
            if self.questions == 9:
                raise MemoryError
            return ask(self, value)

        with monkeypatch.context() as patched:
            patched.setattr(SparseVector, "ask", fail)
            with pytest.raises(MemoryError):
                watch(homes)
        stays = ledger.balance().spent
        found = watch(homes)
        assert ledger.balance().spent >= stays + sum(run.epsilon for run in found.run.vector.runs)
        assert "lost" in [one.state for one in history(ledger)]

    @pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.slow)])
    def test_a_stretch_that_the_ledger_did_not_take_is_lost_and_not_drawn_again(
        self, homes: Dataset, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        """Whether there is room for it may depend on how many days it names."""
        exchange, exchanged = Ledger.exchange, 0

        def full(self: Ledger, ending: Any, **others: Any) -> Any:
            nonlocal exchanged
            exchanged += ending is not None
            if exchanged == number:
                raise LedgerError("the ledger cannot be used: database or disk is full")
            return exchange(self, ending, **others)

        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "exchange", full)
            with pytest.raises(LedgerError, match="full"):
                watch(homes)
        stays = ledger.balance().spent
        assert "lost" in [one.state for one in history(ledger)]
        found = watch(homes)
        assert ledger.balance().spent >= stays + sum(run.epsilon for run in found.run.vector.runs)
        assert ledger.verify().holds

    @pytest.mark.parametrize(
        "by_hand",
        [{"mechanism": "exponential", "expect": 20}, {"noise": (100, 200), "resample": False}],
        ids=["rationed", "one threshold for all"],
    )
    def test_killed_between_stretches_every_answer_that_is_kept_stays_paid(
        self, homes: Dataset, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, by_hand: dict[str, Any]
    ) -> None:
        """One run goes through all stretches: the last of them pays for answers that stand in those before it."""
        runs: list[BudgetedRun] = []
        begin, exchange = BudgetedRun.begin, Stretches.exchange

        def begun(self: BudgetedRun, *, entropy: Any) -> None:
            runs.append(self)
            begin(self, entropy=entropy)

        def killed(self: Stretches, *given: Any, **named: Any) -> Any:
            found, answers = exchange(self, *given, **named), given[2]
            if answers["count"]:
                raise KeyboardInterrupt
            return found

        days = homes.candidates(start=DAYS[0], end=DAYS[-1])
        plan = homes.plan_watch(days, threshold=25, budget=0.8, **by_hand)
        monkeypatch.setattr(BudgetedRun, "begin", begun)
        for _ in range(3):
            with monkeypatch.context() as patched:
                patched.setattr(Stretches, "exchange", killed)
                patched.setattr(kept.KeptWatch, "give_up", lambda *_, **__: "a killed process says nothing")
                with pytest.raises(KeyboardInterrupt):
                    plan.ask(anyway=True)
        found = plan.ask(anyway=True)
        assert found.repeats
        costs = [run.spent for run in runs if run.below + run.above]
        assert len(costs) >= 3
        assert sum(costs) <= ledger.balance().spent + 1e-9 <= 0.8 + 2e-9
        assert ledger.verify().holds

    def test_of_two_at_one_unseen_stretch_the_first_to_end_it_is_shown(self, ledger: Ledger, place: str) -> None:
        question, cost = {"verb": "watch"}, Loss(epsilon=0.5)
        with Ledger.open(place) as other:
            first = kept.KeptWatch(ledger, question, cost=cost)
            vectors = [stream().vector(SYSTEM_ENTROPY, filter=first.filter)]
            first.make_ready(vectors[0])
            second = kept.KeptWatch(other, question, cost=cost)
            vectors.append(stream().vector(SYSTEM_ENTROPY, filter=second.filter))
            for one, vector, value in zip((first, second), vectors, (1.0, 0.0), strict=True):
                one.add(vector.ask(value).value == "above")
            assert ledger.balance().anchor.number == 2, "one reservation for both"
            second.settle(vectors[1], ended=True)
            with pytest.raises(LedgerError, match="another process goes on"):
                first.settle(vectors[0], ended=True)
        assert ledger.verify().holds


class TestStream:
    def test_lines_asked_again_are_repeated_and_later_ones_go_on(self, ledger: Ledger) -> None:
        first = stream().start(book=ledger)
        answers = answered(first, VALUES[:10])
        first.settle(ended=False)
        before = ledger.balance().spent
        again = stream().start(book=ledger)
        assert answered(again, [0.5] * 10) == answers, "whatever the values are now"
        assert not again.repeating
        more = answered(again, VALUES[10:15])
        again.settle(ended=False)
        assert before < ledger.balance().spent <= 0.5
        assert again.cost == pytest.approx(ledger.balance().spent, abs=1e-12)
        onward = stream().start(book=ledger, onward=True)
        assert onward.kept is not None
        assert onward.kept.repeated == 15
        rest = answered(onward, VALUES[15:18])
        onward.settle(ended=False)
        last = stream().start(book=ledger)
        assert answered(last, [0.0] * 18) == answers + more + rest
        last.settle(ended=False)
        assert ledger.verify().holds

    def test_a_rationed_watch_goes_on_with_its_ration(self, ledger: Ledger) -> None:
        """Near the end half of what is left may go to one ⊤; a ration that starts again would give it a seventh."""
        line = WatchRequest(threshold=0.5, budget=0.5, mechanism="exponential", expect=4)
        plan = plan_watch(FAMILY, line, questions=40)
        assert isinstance(plan.settings.way, Rationed)
        first = plan.start(book=ledger)
        answered(first, [0.0] * 38)
        first.settle(ended=False)
        again = plan.start(book=ledger, onward=True)
        left = 0.5 - again.cost
        assert answered(again, [1.0]) == [True]
        again.settle(ended=False)
        assert again.cost - (0.5 - left) > 0.3 * left

    def test_names_tell_other_questions(self, ledger: Ledger) -> None:
        first = stream().start(book=ledger)
        for name in ("mon", "tue", 3):
            first.ask(0.1, name=name)
        first.settle(ended=False)
        again = stream().start(book=ledger)
        again.ask(0.1, name="mon")
        with pytest.raises(LedgerError, match="question 2 had another id"):
            again.ask(0.1, name="wed")

    def test_a_budget_that_ended_has_ended_for_good(self, ledger: Ledger) -> None:
        first = stream(0.2).start(book=ledger)
        answers = answered(first, VALUES * 20)
        assert len(answers) < 20 * len(VALUES)
        first.settle(ended=not first.can_ask)
        before = ledger.balance()
        assert before.spent <= 0.2
        again = stream(0.2).start(book=ledger)
        assert answered(again, VALUES * 20) == answers
        again.settle(ended=True)
        assert ledger.balance() == before

    def test_a_slow_stream_is_in_the_ledger_before_it_is_shown(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kept, "SECONDS_BETWEEN_ENTRIES", -1.0)
        first = stream().start(book=ledger)
        answers = answered(first, VALUES[:12])
        assert ledger.balance().spent >= first.cost
        # Nothing is settled: the process is gone.
        again = stream().start(book=ledger)
        assert again.kept is not None
        assert again.kept.repeated == 12
        assert answered(again, [0.0] * 12) == answers

    def test_of_two_at_one_watch_the_later_one_goes_on_and_both_are_charged(self, ledger: Ledger, place: str) -> None:
        first = stream().start(book=ledger)
        answered(first, VALUES[:5])
        with Ledger.open(place) as other:
            second = stream().start(book=other)
            answered(second, VALUES[:5])
            with pytest.raises(LedgerError, match="another process goes on with this stream"):
                first.settle(ended=False)
            second.settle(ended=False)
        assert ledger.balance().spent >= first.vector.spent + second.vector.spent
        assert ledger.verify().holds

    def test_what_does_not_fit_the_total_is_refused_before_anything_is_asked(self, ledger: Ledger) -> None:
        ledger.reserve({"question": "nearly all"}, cost=0.9999)
        with pytest.raises(BudgetExhausted):
            stream().start(book=ledger)

    def test_a_retired_data_set_ends_a_watch_at_its_next_entry(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kept, "SECONDS_BETWEEN_ENTRIES", -1.0)
        found = stream().start(book=ledger)
        found.ask(0.1)
        ledger.retire()
        with pytest.raises(LedgerError, match="retired"):
            found.ask(0.1)
        found.settle(ended=False)
        assert ledger.verify().holds

    def test_long_streams_are_kept_in_parts(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        from dpselect.ledger import answer_log

        monkeypatch.setattr(answer_log, "MOST", 7)
        first = stream().start(book=ledger)
        answers = answered(first, VALUES)
        first.settle(ended=False)
        again = stream().start(book=ledger)
        assert answered(again, VALUES) == answers
        assert len(answers) > 20

    @pytest.mark.parametrize("at", ["before", "after"])
    def test_an_interruption_between_two_stretches_ends_the_watch_here_and_not_in_the_ledger(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, at: str
    ) -> None:
        monkeypatch.setattr(kept, "SECONDS_BETWEEN_ENTRIES", -1.0)
        first = stream().start(book=ledger)
        shown = answered(first, VALUES[:4])
        exchange = ledger.exchange

        def interrupted(*arguments: Any, **options: Any) -> Any:
            if at == "after":
                exchange(*arguments, **options)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(ledger, "exchange", interrupted)
            with pytest.raises(KeyboardInterrupt):
                first.ask(0.1)
        with pytest.raises(LedgerError, match="start it again"):
            answered(first, VALUES)
        first.settle(ended=False)
        again = stream().start(book=ledger)
        assert answered(again, VALUES[:4]) == shown
        answered(again, VALUES * 50)
        again.settle(ended=True)
        assert ledger.balance().spent <= 0.5
        assert ledger.verify().holds


class TestDeclared:
    """Totals or plans for which only the whole cost is known."""

    @pytest.fixture
    def zcdp(self, place: str) -> Iterator[Ledger]:
        with Ledger.create(place, dataset="homes", total=Total.zcdp(1.0, delta=1e-6)) as made:
            yield made

    def test_all_of_it_is_charged_once_and_stays(self, zcdp: Ledger) -> None:
        first = stream().start(book=zcdp)
        answers = answered(first, VALUES[:10])
        first.settle(ended=False)
        assert zcdp.balance().spent == pytest.approx(0.125)
        again = stream().start(book=zcdp)
        assert answered(again, VALUES) == answers
        assert (again.cost, zcdp.balance().spent) == (first.cost, pytest.approx(0.125))

    def test_answers_that_may_have_been_shown_are_not_drawn_again_for_nothing(self, zcdp: Ledger) -> None:
        answered(stream().start(book=zcdp), VALUES[:10])
        with pytest.raises(InvalidParameter, match="cannot go on"):
            stream().start(book=zcdp)
        answered(stream().start(book=zcdp, afresh=True), VALUES[:10])
        assert zcdp.balance().spent == pytest.approx(0.25)

    def test_two_at_once_do_not_both_show_answers_under_one_charge(self, zcdp: Ledger, place: str) -> None:
        first = stream().start(book=zcdp)
        with Ledger.open(place) as other, pytest.raises(InvalidParameter, match="cannot go on"):
            stream().start(book=other)
        answered(first, VALUES[:3])
        first.settle(ended=False)

    @pytest.mark.parametrize(
        ("failure", "at", "goes_on"),
        [(KeyboardInterrupt, 0, True), (KeyboardInterrupt, 3, True), (MemoryError, 0, True), (MemoryError, 3, False)],
    )
    def test_a_table_is_drawn_again_under_one_charge_only_where_no_draw_can_have_told(
        self, zcdp: Ledger, monkeypatch: pytest.MonkeyPatch, failure: Any, at: int, goes_on: bool
    ) -> None:
        """Nothing was shown; but a failure between draws that is seen may tell of the noise, unlike an interruption."""
        rows = pyarrow.table({"meter": ["m"] * 31, "at": DAYS, "kwh": [5.0] * 31})
        homes = Dataset(rows, user="meter", time="at", value="kwh", cap=50, population=20, ledger=zcdp)
        ask = SparseVector.ask

        def fail(self: SparseVector, value: Any) -> Any:
            if self.questions == at:
                raise failure
            return ask(self, value)

        with monkeypatch.context() as patched:
            patched.setattr(SparseVector, "ask", fail)
            with pytest.raises(failure) as failed:
                watch(homes)
        charged = zcdp.balance().spent
        assert charged == pytest.approx(0.32)
        if goes_on:
            assert failed.value.__notes__[0].endswith("the ledger holds ε = 0.8 for it until it is asked again")
            assert watch(homes).answered > 0
        else:
            assert failed.value.__notes__[0].startswith("the answers are lost and the ledger keeps ε = 0.8")
            with pytest.raises(InvalidParameter, match="was lost after its charge"):
                watch(homes)
        assert zcdp.balance().spent == charged

    def test_of_two_watches_over_a_table_under_one_charge_one_is_shown(self, zcdp: Ledger, place: str) -> None:
        question, cost = {"verb": "watch"}, Loss(epsilon=0.5)
        with Ledger.open(place) as other:
            one, two = (kept.KeptWatch(book, question, cost=cost) for book in (zcdp, other))
            vectors = [stream().vector(SYSTEM_ENTROPY) for _ in range(2)]
            one.add(True)
            two.add(False)
            one.settle(vectors[0], ended=True)
            with pytest.raises(LedgerError, match="answered this watch first"):
                two.settle(vectors[1], ended=True)
        assert zcdp.balance().spent == pytest.approx(0.125)


BIKES = ["--time", "dteday", "--value", "cnt", "--maximum", "8714", "--sensitivity", "1", "--monotone",
         "--from", "2011-05-01", "--to", "2011-06-30"]  # fmt: skip
KINDS = {
    "pure": (["--total", "2"], None),
    "approximate": (["--total", "2", "--delta", "1e-5"], (1.0, 1e-6)),
    "zcdp": (["--rho", "2", "--delta", "1e-6"], None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_watch_with_a_delta_from_end_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bikes: Path, kind: str
) -> None:
    """Two months of bicycles: an (ε, δ) total takes it as a whole, once; the others refuse it, and nothing is spent."""
    from dpselect.cli import main

    options, charged = KINDS[kind]
    place, plan = str(tmp_path / "bikes.ledger"), tmp_path / "plan.toml"
    family = QueryFamily(lower=0, upper=1, sensitivity=1 / 8714, monotone=True)
    job = Job(asked="crossings", family=family, count=61, epsilon=1.0, delta=1e-6, threshold=0.5)
    Plan.made(job, "gaussian-release", epsilon=1.0).save(plan)
    assert main(["ledger", "create", place, "--dataset", "bikes", *options]) == 0
    asked = ["watch", str(bikes), *BIKES, "--plan", str(plan), "--ledger", place, "--anyway", "--json"]
    capsys.readouterr()
    codes, said = [], []
    for _ in range(2):
        codes.append(main(asked))
        said.append(capsys.readouterr())
    with Ledger.open(place) as ledger:
        balance = ledger.balance()
        assert ledger.verify().holds
    if charged is None:
        assert codes == [2, 2]
        assert "nothing was spent" in said[0].err
        assert balance.spent == 0
        return
    assert set(codes) <= {0, 3}
    first, again = ([json.loads(line) for line in one.out.splitlines()] for one in said)
    assert [line["answer"] for line in first[:-1]] == [line["answer"] for line in again[:-1]]
    assert 0 < first[-1]["above"] < 61
    assert again[-1]["repeated"] == first[-1]["questions"]
    assert (balance.spent, balance.total.spent_delta(balance.charged)) == pytest.approx(charged)


@pytest.fixture
def bikes() -> Path:
    folder = Path(os.environ.get("DPSELECT_DATA") or Path(__file__).parents[3] / "shared" / "data")
    if not (folder / "uci_bikes_day.csv").is_file():
        pytest.skip("uci_bikes_day.csv is not there; set DPSELECT_DATA to the folder with the public data sets")
    return folder / "uci_bikes_day.csv"


def test_a_killed_command_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL in the middle of a pipe: what was shown more than a moment ago is repeated, and all of it is charged."""
    place = tmp_path / "homes.ledger"
    command = [sys.executable, "-c",
               "import sys; from dpselect.dataset import kept; kept.SECONDS_BETWEEN_ENTRIES = -1.0; "
               "from dpselect.cli import main; sys.exit(main())",
               "watch", "-", "--sensitivity", "1/10000", "--threshold", "0.5", "--budget", "0.5",
               "--ledger", str(place)]  # fmt: skip
    Ledger.create(place, dataset="load", total=Total.pure(1)).close()
    child = subprocess.Popen([*command, "--total", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    shown = []
    for value in VALUES[:8]:
        child.stdin.write(f"{value}\n".encode())
        child.stdin.flush()
        shown.append(json.loads(child.stdout.readline()))
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdin.close()
    child.stdout.close()
    done = subprocess.run(command, input="\n".join(map(str, VALUES[:10])), capture_output=True, text=True, timeout=60)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["answer"] for line in lines[:8]] == [line["answer"] for line in shown]
    assert [line.get("repeated", False) for line in lines[:-1]] == [True] * 8 + [False] * 2
    assert lines[-1]["spent"] >= shown[-1]["spent"]
    assert "8 answers are in the ledger already" in done.stderr
    with Ledger.open(place) as ledger:
        assert ledger.balance().spent >= shown[-1]["spent"]
        assert ledger.verify().holds


@pytest.mark.parametrize(
    "options", [["--key", "x"], ["--afresh"], ["--onward"], ["--total", "1"], ["--ledger", "x.ledger", "--seed", "1"]]
)
def test_what_means_nothing_without_a_ledger_is_refused(
    dpselect_stream: Callable[..., int], options: list[str]
) -> None:
    assert dpselect_stream(*options) == 2


@pytest.fixture
def dpselect_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    monkeypatch.chdir(tmp_path)

    def run(*options: str) -> int:
        from dpselect.cli import main

        monkeypatch.setattr(sys, "stdin", io.StringIO("0.1\n"))
        return main(["watch", "-", "--sensitivity", "0.001", "--threshold", "0.5", "--budget", "1", *options])

    return run
