"""A filter whose books live in a ledger: the contract of the ones in memory, and what a ledger adds."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.composition.members import subclasses

from dpselect import GaussianAboveThreshold, QueryFamily, SeededEntropy, SparseVector
from dpselect.composition import Filter, PureFilter, ZCDPFilter
from dpselect.errors import BudgetExhausted, InvalidParameter, LedgerError, StateRefused
from dpselect.ledger import Ledger, LedgerFilter, Total, filter_on
from dpselect.privacy.loss import Loss

_where = Path(__file__).parents[1] / "composition" / "test_filters.py"
_spec = importlib.util.spec_from_file_location("filter_contract", _where)
assert _spec is not None
assert _spec.loader is not None
contract: Any = importlib.util.module_from_spec(_spec)
sys.modules["filter_contract"] = contract
_spec.loader.exec_module(contract)

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
WATCHER = GaussianAboveThreshold(FAMILY, threshold=0.3, sigma_threshold=0.1, sigma_query=0.2)
QUESTION = {"verb": "watch"}
TOTALS = {
    "pure": Total.pure(1.0),
    "approximate": Total.approximate(1.0, delta=1e-5),
    "zcdp": Total.zcdp(1.0, delta=1e-5),
}


@pytest.fixture(
    params=[
        "pure sqlite",
        pytest.param("approximate sqlite", marks=pytest.mark.slow),
        "zcdp sqlite",
        pytest.param("pure postgresql", marks=pytest.mark.slow),
    ]
)
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LedgerFilter]:
    kind, database = request.param.split()
    place = str(tmp_path / "homes.ledger") if database == "sqlite" else request.getfixturevalue("fresh_schema")()
    with Ledger.create(place, dataset="homes", total=TOTALS[kind]) as made:
        yield filter_on(made, question=QUESTION)


def test_every_filter_on_a_ledger_is_made_for_one_of_these_totals(tmp_path: Path) -> None:
    made = set()
    for kind, total in TOTALS.items():
        with Ledger.create(tmp_path / f"{kind}.ledger", dataset="homes", total=total) as ledger:
            made.add(type(filter_on(ledger, question=QUESTION)))
    assert made == set(subclasses(LedgerFilter))


class TestContract(contract.TestContract):  # type: ignore[misc]
    """Everything that is asked of filters in memory: found again in the ledger, and limited by its total."""

    def found_again(self, fresh: LedgerFilter) -> LedgerFilter:
        fresh.close()
        return filter_on(fresh.ledger, question=QUESTION)

    def twin(self, fresh: LedgerFilter) -> Filter:
        return ZCDPFilter(1.0) if fresh.ledger.total.kind == "zcdp" else PureFilter(1.0)

    def with_limit(self, fresh: LedgerFilter) -> tuple[str, Any]:
        kind = fresh.ledger.total.kind
        more = {} if kind == "pure" else {"delta": 1e-5}
        return fresh.ledger.total.unit, lambda limit: getattr(Total, kind)(limit, **more)

    def test_no_saved_state_takes_the_place_of_the_ledger(self, fresh: LedgerFilter) -> None:
        for state in (fresh.state(), {}, None):
            with pytest.raises(StateRefused, match="live in a ledger"):
                type(fresh).from_state(state)  # type: ignore[arg-type]

    @pytest.mark.parametrize("stretch", [[1.0], np.ones(2), "1", 1 + 0j, 0.0, -1.0])
    def test_a_stretch_that_is_not_one_number_is_refused(self, fresh: LedgerFilter, stretch: Any) -> None:
        with pytest.raises(InvalidParameter, match="stretch"):
            filter_on(fresh.ledger, question=QUESTION, stretch=stretch)


class TestStretches:
    def test_the_ledger_carries_more_than_was_used_until_the_stretch_is_settled(self, ledger: Ledger) -> None:
        with filter_on(ledger, question=QUESTION, stretch=0.25) as budget:
            for _ in range(3):
                budget.charge(0.0625)
            assert budget.spent == 0.1875
            assert ledger.balance().spent == 0.25
            assert ledger.balance().anchor.number == 2, "one transaction for three charges"
        assert ledger.balance().spent == 0.1875
        assert list(ledger.entries())[-1].content == {"answer": {"charges": 3}}
        assert ledger.verify().holds

    def test_the_last_of_the_budget_can_be_used(self, ledger: Ledger) -> None:
        with filter_on(ledger, question=QUESTION, stretch=0.3) as budget:
            for _ in range(16):
                budget.charge(0.0625)
            assert not budget.fits(1e-9)
        assert ledger.balance().remaining == 0.0

    def test_two_streams_share_what_is_there(self, ledger: Ledger, place: str) -> None:
        with Ledger.open(place) as other_ledger:
            one = filter_on(ledger, question=QUESTION, stretch=0.25)
            two = filter_on(other_ledger, question=QUESTION, stretch=0.25)
            charged = 0
            for budget in [one, two] * 40:
                if budget.fits(0.03125):
                    budget.charge(0.03125)
                    charged += 1
            one.close()
            two.close()
        assert charged == 32
        assert ledger.balance().remaining == 0.0
        assert ledger.verify().holds

    def test_a_closed_filter_counts_no_more(self, ledger: Ledger) -> None:
        budget = filter_on(ledger, question=QUESTION)
        budget.charge(0.01)
        budget.close()
        budget.close()
        for attempt in (lambda: budget.charge(0.01), lambda: budget.open_run(WATCHER)):
            with pytest.raises(StateRefused, match="closed"):
                attempt()

    def test_an_open_run_cannot_be_closed_over(self, ledger: Ledger) -> None:
        budget = filter_on(ledger, question=QUESTION)
        held = budget.open_run(WATCHER)
        with pytest.raises(StateRefused, match="open run"):
            budget.close()
        held.settle(0.001)
        budget.close()
        assert 0.001 <= ledger.balance().spent < 0.0011

    def test_after_an_error_in_a_run_the_stretch_stays_charged(self, ledger: Ledger) -> None:
        def crash() -> None:
            with filter_on(ledger, question=QUESTION, stretch=0.25) as budget:
                budget.open_run(WATCHER)
                raise RuntimeError

        with pytest.raises(RuntimeError):
            crash()
        assert ledger.balance().spent == 0.25

    @pytest.mark.parametrize("at", ["before", "after"])
    def test_an_interruption_of_an_exchange_loses_no_charge(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, at: str
    ) -> None:
        budget = filter_on(ledger, question=QUESTION, stretch=0.125)
        budget.charge(0.125)
        exchange = ledger.exchange

        def interrupted(*arguments: Any, **options: Any) -> Any:
            if at == "after":
                exchange(*arguments, **options)
            raise KeyboardInterrupt

        monkeypatch.setattr(ledger, "exchange", interrupted)
        with pytest.raises(KeyboardInterrupt):
            budget.charge(0.0625)
        monkeypatch.undo()
        budget.charge(0.0625)
        budget.close()
        # The charge that was interrupted was never let through; at most its stretch is lost.
        assert 0.1875 <= ledger.balance().spent <= 0.1875 + 0.125
        assert ledger.verify().holds

    def test_a_database_that_has_gone_lets_nothing_through(self, tmp_path: Path) -> None:
        with Ledger.create(tmp_path / "x.ledger", dataset="homes", total=Total.pure(1.0)) as made:
            budget = filter_on(made, question=QUESTION, stretch=0.125)
            budget.charge(0.125)
            (tmp_path / "x.ledger").unlink()
            with pytest.raises(LedgerError):
                budget.charge(0.125)


class TestSparseVector:
    def test_it_answers_as_with_a_budget_in_memory_and_is_charged_what_it_cost(self, ledger: Ledger) -> None:
        values = np.tile([0.05, 0.1, 0.2, 0.9], 100)
        memory = SparseVector(WATCHER, filter=PureFilter(1.0), entropy=SeededEntropy(5))
        with filter_on(ledger, question=QUESTION) as budget:
            durable = SparseVector(WATCHER, filter=budget, entropy=SeededEntropy(5))
            answered = []
            for value in values:
                if not memory.can_ask:
                    break
                expected = memory.ask(value)
                assert durable.can_ask
                assert durable.ask(value) == expected
                assert memory.remaining - 1e-12 <= durable.remaining <= memory.remaining
                answered.append(expected)
                assert ledger.balance().spent >= durable.spent, "charged before it is answered"
            durable.close()
        memory.close()
        assert len(answered) > 50
        assert ledger.balance().spent == pytest.approx(memory.spent, abs=1e-12)
        assert ledger.balance().spent >= memory.spent
        assert ledger.verify().holds

    def test_one_run_goes_on_over_many_stretches_as_far_as_in_memory(self, ledger: Ledger) -> None:
        memory = SparseVector(WATCHER, filter=PureFilter(1.0), resample=False, entropy=SeededEntropy(5))
        while memory.can_ask:
            memory.ask(0.0)
        with filter_on(ledger, question=QUESTION, stretch=0.05) as budget:
            svt = SparseVector(WATCHER, filter=budget, resample=False, entropy=SeededEntropy(5))
            while svt.can_ask:
                svt.ask(0.0)
                assert ledger.balance().spent >= svt.spent
            assert svt.open_run == memory.open_run
            svt.close()
        stretches = sum(entry.kind == "reserve" for entry in ledger.entries())
        assert 3 < stretches < svt.questions
        assert svt.spent <= ledger.balance().spent < svt.spent + 1e-9
        assert ledger.verify().holds

    def test_a_run_cannot_be_settled_beyond_what_there_is(self, ledger: Ledger) -> None:
        budget = filter_on(ledger, question=QUESTION)
        held = budget.open_run(WATCHER)
        with pytest.raises(InvalidParameter, match="allowed"):
            held.settle(1.5)
        assert held.open, "and its stretch stays charged"
        held.settle(0.5)
        assert budget.spent == 0.5
        assert ledger.balance().spent >= 0.5

    def test_many_values_at_once_stop_where_the_budget_ends(self, ledger: Ledger) -> None:
        ledger.reserve({"question": "most of it"}, cost=0.875)
        with filter_on(ledger, question=QUESTION) as budget:
            svt = SparseVector(WATCHER, filter=budget, entropy=SeededEntropy(5))
            answers = svt.ask_many(np.tile([0.05, 0.9], 2000))
            assert 0 < len(answers) < 4000
            with pytest.raises(BudgetExhausted):
                svt.ask(0.9)
            svt.close()
        assert 0.875 + svt.spent <= ledger.balance().spent <= 1.0

    def test_a_zcdp_ledger_pays_for_a_run_beforehand(self, place: str) -> None:
        with (
            Ledger.create(place, dataset="homes", total=Total.zcdp(0.1, delta=1e-6)) as ledger,
            filter_on(ledger, question=QUESTION) as budget,
        ):
            svt = SparseVector(WATCHER, filter=budget, horizon=20, entropy=SeededEntropy(5))
            svt.ask(0.0)
            paid = budget.spent
            assert paid > 0
            svt.close()
            assert budget.spent == paid

    def test_its_budget_is_not_saved_to_a_file(self, ledger: Ledger) -> None:
        with filter_on(ledger, question=QUESTION) as budget:
            svt = SparseVector(WATCHER, filter=budget)
            svt.ask(0.0)
            with pytest.raises(StateRefused):
                svt.save()
            svt.close()


def test_costs_with_a_delta_go_to_an_approximate_ledger(place: str) -> None:
    with Ledger.create(place, dataset="homes", total=Total.approximate(1.0, delta=1e-6)) as ledger:
        with filter_on(ledger, question=QUESTION) as budget:
            budget.charge(Loss(epsilon=0.25, delta=5e-7))
            with pytest.raises(BudgetExhausted):
                budget.charge(Loss(epsilon=0.25, delta=6e-7))
            budget.charge(Loss(epsilon=0.25, delta=5e-7))
        assert ledger.balance().charged.delta == 10**12
        assert json.loads(json.dumps(budget.state()))["delta"] == 10**12
