"""A watch is planned on public knowledge alone, says beforehand how good it will be, and is refused if it will not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpselect as dp
from dpselect.dataset import WatchRequest
from dpselect.dataset.known import Known
from dpselect.dataset.request import CLEARLY_BETTER
from dpselect.dataset.watch import WatchPlan, plan_watch
from dpselect.errors import InvalidParameter, NotPublic
from dpselect.mechanisms.catalogue import Entry, of_kind
from dpselect.noise.entropy import SeededEntropy
from dpselect.planning import Profile

FAMILY = dp.QueryFamily(lower=0, upper=1, sensitivity=1 / 5000, monotone=True)


def planned(**changes: Any) -> WatchPlan:
    family = changes.pop("family", FAMILY)
    line = WatchRequest(**({"threshold": Fraction(1, 4), "budget": 1} | changes))
    return plan_watch(family, line, questions=365)


def lived(plan: WatchPlan, values: np.ndarray, *, times: int = 40) -> float:
    truth, scores = values >= plan.settings.threshold, []
    for seed in range(times):
        given = plan.vector(SeededEntropy(seed)).ask_many(values)
        hits = np.count_nonzero(given & truth[: len(given)])
        scores.append(2 * hits / (np.count_nonzero(given) + np.count_nonzero(truth)))
    return float(np.mean(scores))


def test_the_planner_chooses_among_pure_ones_and_says_why() -> None:
    plan = planned()
    assert plan.settings.name == "exponential-kept"
    assert plan.settings.delta == 0.0
    assert "of 2 ways with the same pure guarantee it is expected to do best" in plan.reason
    past = Profile(tuple(np.linspace(0.1, 0.3, 365)), public=True)
    rationed = planned(like=past)
    assert "shared out anew before each question" in rationed.reason
    assert rationed.settings.name == "exponential-rationed"
    assert planned(mechanism="laplace").reason.endswith("as asked.")


@pytest.mark.parametrize("entry", of_kind("above-threshold"), ids=lambda entry: entry.short)
def test_every_mechanism_of_the_catalogue_can_be_asked_for(entry: Entry) -> None:
    plan = planned(mechanism=entry.short, budget=5)
    assert plan.settings.one_by_one is not None
    assert plan.settings.one_by_one.entry == entry


def test_the_expectation_is_what_happens_on_such_values() -> None:
    plan = planned()
    assert plan.expected is not None
    values = plan.asked.job(FAMILY, questions=365, unit=Fraction(1)).values()  # type: ignore[union-attr]
    assert lived(plan, values) == pytest.approx(plan.expected.score, abs=0.03)
    assert plan.expected.worst <= plan.expected.score <= plan.expected.best  # type: ignore[operator]


def test_the_planned_noise_beats_the_plain_gaussian_rule() -> None:
    """What a watch did before it was planned, on the same values at the same pure ε."""
    plan, plain = planned(), planned(resample=False)
    values = plan.asked.job(FAMILY, questions=365, unit=Fraction(1)).values()  # type: ignore[union-attr]
    assert lived(plan, values) > lived(plain, values) + 0.2


def test_what_is_hardly_better_than_a_guess_is_refused_and_costs_nothing() -> None:
    plan = planned(budget=0.01)
    assert not plan.useful
    with pytest.raises(
        InvalidParameter, match=r"hardly be better than a guess.*would do on such data.*nothing was spent"
    ):
        plan.insist(anyway=False)
    plan.insist(anyway=True)
    assert planned().useful
    found = planned().expected
    assert found is not None
    assert found.guess is not None
    assert found.score >= found.guess + CLEARLY_BETTER * (1 - found.guess)


@pytest.mark.slow
def test_the_budget_named_in_a_refusal_does_and_much_less_does_not() -> None:
    told = planned(budget=0.01).remedy()
    enough = Fraction(told.split("a budget of ")[1].split()[0])
    assert planned(budget=enough).useful
    assert not planned(budget=enough / 2).useful
    assert "would do" not in planned(threshold=2, budget=1).remedy()


@pytest.mark.slow
def test_fewer_and_longer_periods_share_the_same_budget() -> None:
    facts: dict[str, Any] = {"user": "u", "time": "t", "value": "v", "cap": 1, "population": 5000}
    days = dp.Dataset("no/such/file.csv", **facts)
    year = days.candidates(start="2013-01-01", end="2013-12-31")
    told = {
        budget: days.plan_watch(year, threshold=Fraction(1, 4), budget=Fraction(budget)).remedy()
        for budget in ("0.1", "0.02")
    }
    assert "months would do" in told["0.1"]
    assert "weeks would do" not in told["0.02"]


def test_knowledge_sharpens_the_plan() -> None:
    rare, often = planned(expect=Fraction(1, 100)), planned(expect=Fraction(4, 10))
    assert rare.settings.noise_spread < 0.5 * often.settings.noise_spread
    # A range bounds the values and does not say how many of them are high.
    wide = planned(between=(0, 0.4))
    assert wide.expected is not None
    assert wide.expected.share == pytest.approx(0.1, abs=0.01)
    assert "supposed: one" in wide.asked.known.in_words(period="day")
    year = 0.2 + 0.08 * np.sin(np.arange(365) / 58.0)
    like = planned(like=Profile(tuple(year), public=True))
    assert like.expected is not None
    assert like.expected.share == pytest.approx(float((year >= 0.25).mean()))
    with pytest.raises(NotPublic):
        Profile(tuple(year))


def test_a_share_and_a_number_say_the_same() -> None:
    assert Known(expect=Fraction(1, 5)).share(questions=365) == Known(expect=73).share(questions=365)
    for wrong in (0, -1, 366, 1.5):
        with pytest.raises(InvalidParameter, match="expect must be"):
            Known(expect=wrong).share(questions=365)


def test_a_plan_fits_a_table_with_the_same_or_a_smaller_sensitivity() -> None:
    plan = planned().settings
    assert plan is not None
    smaller = dp.QueryFamily(lower=0, upper=1, sensitivity=1 / 6000, monotone=True)
    again = plan_watch(smaller, WatchRequest(plan=plan), questions=365)
    assert again.settings.family == smaller
    assert again.vector(SeededEntropy(1)).watcher.family.sensitivity == 1 / 6000
    rounded = dp.QueryFamily(lower=0, upper=1, sensitivity=np.nextafter(1 / 5000, 1), monotone=True)
    plan_watch(rounded, WatchRequest(plan=plan), questions=365)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sensitivity": 1 / 100}, "one person moves by up to"),
        ({"upper": 2}, "from 0 to 1, but here they go from 0 to 2"),
        ({"monotone": False}, "here they may be replaced"),
    ],
)
def test_a_plan_for_something_else_is_refused_in_words_that_differ(change: dict[str, Any], said: str) -> None:
    plan = planned().settings
    facts: dict[str, Any] = {"lower": 0, "upper": 1, "sensitivity": 1 / 5000, "monotone": True}
    with pytest.raises(InvalidParameter, match=said) as refused:
        plan_watch(dp.QueryFamily(**(facts | change)), WatchRequest(plan=plan), questions=365)
    before, after = str(refused.value).split(", but ")[:2]
    assert before.split("is for ")[1] != after.split(";")[0].removeprefix("these are ")
    assert not set("ΔρΣ⊤⊥") & set(str(refused.value))


def test_a_delta_that_is_not_used_is_not_passed_over_in_silence() -> None:
    plan = planned(delta=Fraction(1, 10**5))
    assert ("δ is not used" in plan.reason) == (plan.settings.delta == 0)
    assert "δ is not used" not in planned().reason
