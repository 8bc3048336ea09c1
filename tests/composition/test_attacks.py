"""Ways to get answers that the accounting does not count, each of which must fail (THEORY §13)."""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.composition.members import in_memory

import dpselect as dp
from dpselect.composition import (
    AdvancedFilter,
    GaussianFilter,
    Odometer,
    PureFilter,
    RenyiFilter,
    SparseVector,
    ZCDPFilter,
)
from dpselect.composition.loss_table import loss_table
from dpselect.errors import BudgetExhausted, InvalidData, InvalidParameter, StateRefused
from dpselect.mechanisms.classical_above_threshold import LaplaceAboveThreshold
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.run import Verdict
from dpselect.noise.entropy import SYSTEM_ENTROPY
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.loss import Loss

FILTERS = {name: functools.partial(make, 50.0) for name, make in in_memory().items()}
# One ⊥ is all but certain, so a run that answers it costs next to nothing afterwards; a ⊤ would have cost a lot.
RARE_TOP = GaussianAboveThreshold(
    QueryFamily(lower=0, upper=1, sensitivity=1), threshold=3.326, sigma_threshold=0.6, sigma_query=0.8
)
FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-2)
WATCHER = GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=0.2, sigma_query=0.2)
# 0 is ⊥ and 1 is ⊤ but for chances below 1e-60.
CLEAR = GaussianAboveThreshold(
    QueryFamily(lower=0, upper=1, sensitivity=1e-4), threshold=0.5, sigma_threshold=0.02, sigma_query=0.02
)
LAPLACE = LaplaceAboveThreshold(FAMILY, threshold=0.5, scale_threshold=0.2, scale_query=0.2)


def finished_run() -> Any:
    run = RARE_TOP.start()
    while run.ask(0.0) is Verdict.ABOVE:
        run = RARE_TOP.start()
    run.close()
    return run


def followed() -> Odometer:
    odometer = Odometer()
    odometer.add(finished_run())
    return odometer


AFTER_THE_FACT: dict[str, Callable[[], Any]] = {
    "a finished run": finished_run,
    "the loss of a finished run": lambda: finished_run().loss,
    "an open run": WATCHER.start,
    "a Laplace run": LAPLACE.start,
    "many runs": lambda: WATCHER.run_many([0.1, 0.9], times=3),
    "an open sparse vector": lambda: SparseVector(WATCHER, budget=1.0),
    "the loss of a sparse vector": lambda: SparseVector(WATCHER, budget=1.0).loss,
    "an odometer": followed,
    "an odometer's loss": lambda: followed().loss,
}


class TestOnlyWhatIsKnownBeforehand:
    @pytest.mark.parametrize("what", AFTER_THE_FACT)
    @pytest.mark.parametrize("kind", FILTERS)
    def test_no_filter_takes_what_answers_turned_out_to_cost(self, kind: str, what: str) -> None:
        tested, cost = FILTERS[kind](), AFTER_THE_FACT[what]()
        for attempt in (tested.charge, tested.fits):
            with pytest.raises(InvalidParameter, match=r"known before the release.*SparseVector.*Odometer"):
                attempt(cost)
        assert tested.spent == 0.0

    def test_charging_lucky_runs_to_advanced_composition_would_have_been_unsound(self) -> None:
        """What the refusal prevents: 108 runs that answered ⊥ would have fitted, at a true δ of .397."""
        each = float(RARE_TOP.loss(below=1, above=0))
        bound = math.sqrt(-2.0 * math.log(0.5e-5) * 108 * each**2) + 0.5 * 108 * each**2
        assert bound <= 0.5
        # The analyst asks until the first ⊤; P(⊤) under the two neighbours, for values 0 and 1.
        spread = math.hypot(0.6, 0.8)
        p, q = (0.5 * math.erfc((3.326 - value) / spread / math.sqrt(2.0)) for value in (1.0, 0.0))
        first = np.arange(108)
        delta = np.maximum(p * (1 - p) ** first - math.exp(0.5) * q * (1 - q) ** first, 0.0).sum()
        assert delta > 0.39
        with pytest.raises(InvalidParameter):
            AdvancedFilter(epsilon=0.5, delta=1e-5).charge(finished_run())

    def test_a_class_of_ones_own_that_is_still_open_is_refused(self) -> None:
        class Mine:
            loss, open = Loss(epsilon=0.1), False

        with pytest.raises(InvalidParameter, match="known before"):
            PureFilter(1.0).charge(Mine())

    def test_a_cost_that_charges_while_it_is_read_is_compared_with_what_is_then_left(self) -> None:
        budget = PureFilter(1.0)

        class Sly:
            @property
            def loss(self) -> Loss:
                if budget.spent == 0.0:
                    budget.charge(0.9)
                return Loss(epsilon=0.9)

        with pytest.raises(BudgetExhausted):
            budget.charge(Sly())
        assert budget.spent == 0.9


class TestFiltersTakeWhatMechanismsReturn:
    def test_every_filter_takes_a_pure_selection(self) -> None:
        selection = dp.LaplaceNoisyMax(FAMILY, scale=0.1).release([0.1, 0.9])
        for name, make in FILTERS.items():
            tested = make()
            tested.charge(selection)
            assert tested.spent > 0, name

    def test_units_are_converted_upward(self) -> None:
        zcdp, renyi, gdp = ZCDPFilter(rho=5.0), RenyiFilter(order=8.0, tau=5.0), GaussianFilter(mu=5.0)
        for tested in (zcdp, renyi, gdp):
            tested.charge(Loss(epsilon=0.5))
        assert 0.125 <= zcdp.spent <= 0.125 * (1 + 1e-12)
        assert 0.5 <= renyi.spent <= 0.5 * (1 + 1e-12)  # ε itself, which is below α ε²/2 = 1
        # μ with tanh(ε/2) = 2Φ(μ/2) - 1
        assert math.erf(gdp.spent / 2**1.5) >= math.tanh(0.25) >= math.erf(gdp.spent / 2**1.5 * (1 - 1e-9))

    def test_a_gaussian_release_costs_its_own_rho(self) -> None:
        mechanism = dp.GaussianRelease(FAMILY, sigma=0.1, delta=1e-5)
        release = mechanism.release([0.2, 0.5, 0.9])
        zcdp, renyi = ZCDPFilter(rho=1.0), RenyiFilter(order=8.0, tau=1.0)
        zcdp.charge(release)
        renyi.charge(release)
        assert zcdp.spent == mechanism.rho(3)
        assert 8 * mechanism.rho(3) <= renyi.spent <= 8 * mechanism.rho(3) * (1 + 1e-12)

    def test_an_approximate_loss_without_rho_is_refused_with_what_to_do(self) -> None:
        for tested, unit in ((ZCDPFilter(rho=1.0), "rho"), (RenyiFilter(order=2.0, tau=1.0), "tau")):
            with pytest.raises(InvalidParameter, match=rf"no {unit}\. Charge its mechanism's .*AdvancedFilter"):
                tested.charge(Loss(epsilon=0.1, delta=1e-6))
        with pytest.raises(InvalidParameter, match="AdvancedFilter"):
            PureFilter(1.0).charge(Loss(epsilon=0.1, delta=1e-6))

    def test_one_large_approximate_loss_fits_the_advanced_filter_by_plain_adding(self) -> None:
        tested = AdvancedFilter(epsilon=1.0, delta=1e-5)
        tested.charge(Loss(epsilon=0.5, delta=1e-6))
        assert (tested.spent, tested.spent_delta) == (0.5, 1e-6)

    def test_what_does_not_fit_the_advanced_filter_is_explained(self) -> None:
        tested = AdvancedFilter(epsilon=0.5, delta=1e-5)
        with pytest.raises(BudgetExhausted, match="in quadrature"):
            tested.charge(Loss(epsilon=0.75, delta=1e-6))
        with pytest.raises(BudgetExhausted, match=r"Its delta does not fit: .* more would be due"):
            tested.charge(Loss(epsilon=0.1, delta=9e-6))
        assert tested.spent == 0.0

    def test_a_selection_that_does_not_fit_must_not_be_shown(self) -> None:
        selection = dp.LaplaceNoisyMax(FAMILY, scale=0.001).release([0.1, 0.9])
        with pytest.raises(BudgetExhausted, match="drawn already, so do not show it"):
            PureFilter(0.1).charge(selection)


class TestOneBudgetIsSavedOnce:
    def test_two_sparse_vectors_on_one_filter_are_not_both_saved(self) -> None:
        shared = PureFilter(1.0)
        first, second = SparseVector(WATCHER, filter=shared), SparseVector(WATCHER, filter=shared)
        for svt in (first, second):
            svt.ask(0.1)
            svt.renew()
        for svt in (first, second):
            with pytest.raises(StateRefused, match="another sparse vector spends this budget"):
                svt.save()
        second.close()
        first.save()
        first.close()
        with pytest.raises(StateRefused, match="saved already"):
            second.save()
        with pytest.raises(StateRefused, match="saved already"):
            shared.state()
        assert first.save()

    def test_a_saved_budget_stays_claimed_when_its_saver_is_gone(self) -> None:
        shared = PureFilter(1.0)
        first = SparseVector(WATCHER, filter=shared)
        first.save()
        del first
        gc.collect()
        with pytest.raises(StateRefused, match="saved already"):
            SparseVector(WATCHER, filter=shared).save()

    def test_saving_does_not_drop_the_open_run_of_another(self) -> None:
        shared = PureFilter(1.0)
        first, second = SparseVector(WATCHER, filter=shared), SparseVector(WATCHER, filter=shared)
        while second.open_run is None:
            second.ask(0.0)
        with pytest.raises(StateRefused, match="a run that is not in this state holds the budget"):
            first.save()
        held = PureFilter(1.0)
        third = SparseVector(WATCHER, filter=held)
        hold = held.open_run(WATCHER)
        with pytest.raises(StateRefused, match="a run that is not in this state holds the budget"):
            third.save()
        hold.settle(0.25)
        assert SparseVector.restore(third.save()).remaining == 0.75

    def test_a_filter_state_and_a_sparse_vector_are_not_both_saved(self) -> None:
        svt = SparseVector(WATCHER, budget=1.0)
        with pytest.raises(StateRefused, match="another sparse vector spends"):
            svt.filter.state()
        svt.close()
        svt.filter.state()
        with pytest.raises(StateRefused, match="saved already"):
            svt.save()

    def test_saving_again_and_again_is_what_saving_is_for(self) -> None:
        svt = SparseVector(WATCHER, budget=1.0)
        for _ in range(3):
            svt.ask(0.1)
            again = SparseVector.restore(svt.save())
        assert again.spent == svt.spent


class Asking(Fraction):
    """A number that asks the sparse vector in its turn while it is being read."""

    svt: SparseVector
    times: int

    @property
    def numerator(self) -> int:  # type: ignore[override]
        if self.times > 0:
            self.times -= 1
            try:
                self.svt.ask(0.0)
            except (BudgetExhausted, StateRefused):
                self.times = 0
        return 0

    @property
    def denominator(self) -> int:  # type: ignore[override]
        return 1


def exact_loss(svt: SparseVector, answers: list[list[int]]) -> float:
    """The loss of what was answered, run by run, from the mechanism and not from the sparse vector's books."""
    return math.fsum(float(svt.watcher.loss(below=below, above=above)) for below, above in answers)


class TestRoomIsLookedAtRightBeforeTheQuestion:
    @pytest.mark.parametrize("resample", [True, False])
    @pytest.mark.parametrize("many", [False, True])
    def test_a_value_that_asks_while_it_is_read_gets_no_extra_questions(self, resample: bool, many: bool) -> None:
        for budget in (0.1, 0.3, 0.6):
            svt = SparseVector(WATCHER, budget=budget, resample=resample)
            shown: list[list[int]] = []
            line_ask, line_many = _counted(svt, shown)
            for _ in range(40):
                value = Asking(0)
                value.svt, value.times = svt, 101
                try:
                    svt.ask_many([value, Fraction(0)]) if many else svt.ask(value)
                except BudgetExhausted:
                    break
            assert exact_loss(svt, shown) <= svt.spent * (1 + 1e-9)
            assert svt.spent <= budget
            del line_ask, line_many

    @pytest.mark.parametrize("value", [0.0, 1.0])
    def test_a_finaliser_or_handler_that_asks_at_any_step_breaks_nothing(self, value: float) -> None:
        """At each line of asking, once, another question comes in: as from a signal handler."""
        for at in range(1, 90):
            svt = SparseVector(WATCHER, budget=0.5)
            shown: list[list[int]] = []
            _counted(svt, shown)
            svt.ask(0.0)
            _asked_again_at(at, svt, value)  # 1.0 is all but surely ⊤ and ends the run
            assert exact_loss(svt, shown) <= svt.spent * (1 + 1e-9), at
            assert svt.spent <= 0.5, at

    @pytest.mark.parametrize("value", [0.0, 1.0])
    def test_a_handler_that_asks_while_a_run_is_opened_keeps_its_own_run(self, value: float) -> None:
        """No run is open before, so the question that is broken into opens one; at every line of it, to the last."""
        SparseVector(CLEAR, budget=0.5).ask(0.0)  # the table of losses is made once
        at, refused, reached = 0, 0, True
        while reached:
            at += 1
            svt = SparseVector(CLEAR, budget=0.5)
            shown: list[list[int]] = []
            _counted(svt, shown)
            lines, answered = _asked_again_at(at, svt, value)
            reached = lines >= at
            refused += not answered
            assert exact_loss(svt, shown) <= svt.spent * (1 + 1e-9), at
            assert svt.spent <= 0.5, at
            # Nobody's run is lost: one that is would hold the budget for good.
            assert svt.ask(0.0) is Verdict.BELOW, at
        assert answered
        assert refused > 0, "no line where two runs were being opened"

    @pytest.mark.parametrize("many", [False, True])
    def test_a_handler_whose_runs_end_leaves_the_records_in_their_places(self, many: bool) -> None:
        """The broken-into question opens its run after those of the handler ended: it must not overwrite theirs."""
        at, reached = 0, True
        while reached:
            at += 1
            svt = SparseVector(CLEAR, budget=0.5)
            shown: list[list[int]] = []
            _counted(svt, shown)
            lines, _ = _asked_again_at(
                at, svt, 0.0, handler=lambda svt=svt: [svt.ask(1.0) for _ in range(2)], many=many
            )
            reached = lines >= at
            assert exact_loss(svt, shown) <= svt.spent * (1 + 1e-9), at
            svt.close()
            assert exact_loss(svt, shown) <= svt.spent * (1 + 1e-9), at
            assert svt.spent == svt.filter.spent, at
            assert sum(run.above for run in svt.runs) == len(svt.tops), at

    @pytest.mark.parametrize("many", [False, True])
    def test_a_handler_that_switches_never_gets_a_value_past_the_new_cut(self, many: bool) -> None:
        """A question cut to one range is never put to a run whose price is that of another."""
        at, reached = 0, True
        while reached:
            at += 1
            svt = SparseVector(CLEAR, budget=0.5)
            asked: list[tuple[Any, list[float]]] = []
            _witnessed(svt, asked)
            lines, _ = _asked_again_at(at, svt, 0.0, handler=lambda svt=svt: svt.switch(CLEAR, clip=0.1), many=many)
            reached = lines >= at
            svt.ask_many([0.0, 0.0])
            for run, values in asked:
                family = run.plan.watcher.family
                assert all(family.lower <= value <= family.upper for value in values), at

    @pytest.mark.parametrize("clip", [None, 0.3])
    def test_values_that_change_after_they_were_looked_at_are_not_asked(self, clip: Any) -> None:
        at, reached = 0, True
        while reached:
            at += 1
            svt, values = SparseVector(CLEAR, budget=0.5, clip=clip), np.zeros(3)
            asked: list[tuple[Any, list[float]]] = []
            _witnessed(svt, asked)
            lines = at  # where the value was refused there may be more
            with contextlib.suppress(InvalidData):
                lines, _ = _asked_again_at(at, svt, values, handler=lambda values=values: values.fill(50.0), many=True)
            reached = lines >= at
            for run, given in asked:
                family = run.plan.watcher.family
                assert all(family.lower <= value <= family.upper for value in given), at

    def test_a_handler_that_closes_ends_the_answers(self) -> None:
        at, reached = 0, True
        while reached:
            at += 1
            svt = SparseVector(CLEAR, budget=0.5)
            shown: list[list[int]] = []
            _counted(svt, shown)
            lines, _ = _asked_again_at(at, svt, 0.0, handler=svt.close)
            reached = lines >= at
            assert exact_loss(svt, shown) <= svt.spent * (1 + 1e-9), at
            if reached:
                assert svt.open_run is None, at
                assert svt.filter.fits(0.4), at

    @pytest.mark.parametrize("many", [False, True])
    def test_a_question_without_room_is_not_put_whoever_asks(self, many: bool) -> None:
        svt = SparseVector(WATCHER, budget=0.1)
        run = svt._start()
        run._counts = run._reach.below + 1, 0, 0, 0
        with pytest.raises(StateRefused, match="no room was made"):
            run._in_service(run._counts, 2 if many else 1, 1)
        with pytest.raises(StateRefused, match="no room was made"):
            run.put(0.0)
        with pytest.raises(StateRefused, match="no room was made"):
            run.put_many(np.zeros(3))
        assert run._counts[2:] == (0, 0)

    def test_the_stated_loss_is_not_cut_to_the_budget(self) -> None:
        svt = SparseVector(WATCHER, budget=0.1)
        run = svt._start()
        run._counts = 500, 0, 0, 0  # what must never happen is at least not hidden
        assert svt.spent >= loss_table(WATCHER).loss(500, 0) > 0.1


def _asked_again_at(
    at: int, svt: SparseVector, value: Any, *, handler: Callable[[], Any] | None = None, many: bool = False
) -> tuple[int, bool]:
    """Ask, with ``handler`` (a few more questions) coming in before line ``at``.

    The lines seen, and whether there was an answer.
    """
    seen = 0

    def more() -> None:
        for _ in range(at % 3 + 1):
            svt.ask(0.0)

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal seen
        if not frame.f_globals.get("__name__", "").startswith(("dpselect.composition", "dpselect.mechanisms.run")):
            return None
        if event == "line":
            seen += 1
            if seen == at:
                sys.settrace(None)
                with contextlib.suppress(BudgetExhausted, StateRefused):
                    (handler or more)()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        svt.ask_many(np.full(3, value) if np.ndim(value) == 0 else value) if many else svt.ask(value)
    except (BudgetExhausted, StateRefused):
        return seen, False
    finally:
        sys.settrace(before)
    return seen, True


def _witnessed(svt: SparseVector, asked: list[tuple[Any, list[float]]]) -> None:
    """Keep every value that reaches a noisy threshold, with the run it was put to."""
    start = svt._start

    def started() -> Any:
        run = start()
        line, values = run._line, []
        asked.append((run, values))

        class Watched:
            def ask(self, value: Any) -> bool:
                values.append(value)
                return line.ask(value)

            def ask_many(self, many: Any, *, until: Any) -> Any:
                values.extend(many)
                return line.ask_many(many, until=until)

        run._line = Watched()
        return run

    svt._start = started  # type: ignore[method-assign]


def _counted(svt: SparseVector, shown: list[list[int]]) -> tuple[Any, Any]:
    """Keep count, per noisy threshold, of what was answered: apart from the sparse vector's own books."""
    start = svt._start

    def started() -> Any:
        run = start()
        line, counts = run._line, [0, 0]
        shown.append(counts)

        class Watched:
            def ask(self, value: Any) -> bool:
                above = line.ask(value)
                counts[above] += 1
                return above

            def ask_many(self, values: Any, *, until: Any) -> Any:
                answers = line.ask_many(values, until=until)
                counts[1] += int(answers.sum())
                counts[0] += int((~answers).sum())
                return answers

        run._line = Watched()
        return run

    svt._start = started  # type: ignore[method-assign]
    return start, started


SAME_NUMBER = """
import ctypes, os, sys
from dpselect import LaplaceAboveThreshold, Odometer, PureFilter, QueryFamily, SparseVector
from dpselect.noise.entropy import SYSTEM_ENTROPY

def in_a_namespace(action):
    if ctypes.CDLL(None).unshare(0x20000000) != 0:  # CLONE_NEWPID
        print("not permitted")
        return
    child = os.fork()
    if child == 0:
        action()
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)

def first():
    family = QueryFamily(lower=0, upper=1, sensitivity=0.01)
    watcher = LaplaceAboveThreshold(family, threshold=0.5, scale_threshold=0.1, scale_query=0.1)
    svt, budget, odometer, run = SparseVector(watcher, budget=1.0), PureFilter(1.0), Odometer(), watcher.start()
    svt.ask(0.1)
    SYSTEM_ENTROPY.cell()
    read, write = os.pipe()

    def second():
        os.write(write, SYSTEM_ENTROPY.random_bytes(16))
        refused = 0
        for use in (lambda: svt.ask(0.1), lambda: budget.charge(0.1), lambda: odometer.add(0.1), lambda: run.ask(0.1)):
            try:
                use()
            except Exception as problem:
                refused += "process" in str(problem)
        print(os.getpid(), refused, "refused")

    in_a_namespace(second)
    print(os.getpid(), os.read(read, 16) == SYSTEM_ENTROPY.random_bytes(16), svt.ask(0.1).value)

in_a_namespace(first)
"""


def test_a_child_with_the_number_of_its_parent_shares_neither_budget_nor_noise() -> None:
    done = subprocess.run([sys.executable, "-c", SAME_NUMBER], capture_output=True, text=True, timeout=120, check=True)
    if "not permitted" in done.stdout:
        pytest.skip("a process namespace of one's own needs a privilege")
    assert done.stdout.splitlines() == ["1 4 refused", "1 False below"], done.stderr


def test_a_child_forked_by_python_owns_nothing_whatever_its_number() -> None:
    svt, odometer, run = SparseVector(WATCHER, budget=1.0), Odometer(), WATCHER.start()
    owners = svt, svt.filter, odometer, run, SYSTEM_ENTROPY
    mine = [owner._process for owner in owners]
    child = os.fork()
    if child == 0:
        os._exit(int(any(owner._process in mine for owner in owners)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert mine == [os.getpid()] * len(owners)


FORKED = """
import ctypes, os, sys
from dpselect import GaussianAboveThreshold, QueryFamily
from dpselect.composition import Odometer, PureFilter, SparseVector
from dpselect.errors import StateRefused
watcher = GaussianAboveThreshold(QueryFamily(lower=0, upper=1, sensitivity=1e-4), threshold=.5, sigma_threshold=.02,
                                 sigma_query=.02)
svt, budget, run, odometer = SparseVector(watcher, budget=1.0), PureFilter(1.0), watcher.start(), Odometer()
svt.ask(0.1)
run.ask(0.1)
odometer.add(0.5)
uses = [lambda: svt.ask(0.1), lambda: svt.ask_many([0.1]), svt.save, lambda: budget.charge(0.1), budget.state,
        lambda: budget.open_run(watcher), lambda: run.ask(0.1), lambda: run.ask_many([0.1]), lambda: odometer.add(0.1),
        lambda: odometer.follow(run), lambda: odometer.loss]
fork = ctypes.PyDLL(None).fork if sys.argv[1] == "C" else os.fork
read, write = os.pipe()
if fork() == 0:
    refused = 0
    for use in uses:
        try:
            use()
        except StateRefused:
            refused += 1
    os.write(write, f"{refused} of {len(uses)}, fits {svt.can_ask}, {odometer!r}".encode())
    os._exit(0)
os.wait()
print(os.read(read, 1000).decode())
"""


@pytest.mark.parametrize("fork", ["C", "python"])
def test_a_forked_child_can_use_neither_budget_nor_noise_nor_odometer(fork: str) -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, fork], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "11 of 11, fits False, <Odometer of another process after 1 releases>"


def test_threads_that_share_a_filter_cannot_pass_its_limit() -> None:
    budget = PureFilter(1.0)
    charged = [0] * 8

    def spend(place: int) -> None:
        while True:
            try:
                budget.charge(0.001)
            except BudgetExhausted:
                return
            charged[place] += 1

    threads = [threading.Thread(target=spend, args=(place,)) for place in range(len(charged))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(charged) == 999  # .001 is a little more than a thousandth
    assert budget.spent <= 1.0
