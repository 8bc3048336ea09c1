"""Where a filter stops a simulated pass is where the library's own filter stops the same answers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpselect.composition import PublishedReportingFilter, PureFilter, RepairedReportingFilter
from dpselect.errors import BudgetExhausted
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.paper.stopping import answered, pure_days, repaired_days, reserve_days, rounds_days
from dpselect.privacy.family import QueryFamily

WATCH = GaussianAboveThreshold(
    QueryFamily(lower=0.0, upper=1.0, sensitivity=1e-3), threshold=0.6, sigma_threshold=0.1, sigma_query=0.1 * 3**0.5
)
VERDICTS = np.random.default_rng(8).random((300, 6)) < 0.2


def by_filter(budget: PublishedReportingFilter | RepairedReportingFilter, answers: np.ndarray) -> int:
    """Days answered when runs are opened and settled one by one."""
    day = 0
    while day < len(answers):
        try:
            held = budget.open_run(WATCH, horizon=len(answers) - day)
        except BudgetExhausted:
            return day
        below = 0
        while day < len(answers) and not answers[day]:
            below, day = below + 1, day + 1
        halted = day < len(answers)
        day += halted
        held.settle(float(WATCH.loss(below, int(halted))))
    return day


def test_the_published_rule_stops_where_its_filter_does() -> None:
    found = reserve_days(WATCH, verdicts=VERDICTS, budget=0.6, reserve=0.1)
    for place in range(VERDICTS.shape[1]):
        published = PublishedReportingFilter(
            epsilon=0.6, delta=1e-3, acknowledge="not private as claimed", run_epsilon=0.1
        )
        assert found[place] == by_filter(published, VERDICTS[:, place])
    assert found.max() < len(VERDICTS)


def test_the_repaired_rule_stops_where_its_filter_does() -> None:
    found = repaired_days(WATCH, verdicts=VERDICTS, budget=0.9, delta=1e-2)
    for place in range(VERDICTS.shape[1]):
        assert found[place] == by_filter(RepairedReportingFilter(epsilon=0.9, delta=1e-2), VERDICTS[:, place])
    assert 0 < found.min() < len(VERDICTS)


def test_the_pure_rule_asks_only_what_fits_either_way() -> None:
    budget = 0.5
    found = pure_days(WATCH, verdicts=VERDICTS, budget=budget)
    for place, days in enumerate(found.tolist()):
        spent, below = 0.0, 0
        for day in range(days + 1):
            dearer = max(float(WATCH.loss(below, 1)), float(WATCH.loss(below + 1, 0)))
            assert (spent + dearer <= budget) == (day < days)
            if VERDICTS[day, place]:
                spent, below = spent + float(WATCH.loss(below, 1)), 0
            else:
                below += 1
    assert PureFilter(budget).limit == budget


def test_a_number_of_rounds_ends_after_so_many_tops() -> None:
    days = rounds_days(VERDICTS, rounds=7)
    assert (answered(VERDICTS, days=days).sum(axis=0) == 7).all()
    assert all(VERDICTS[day - 1, place] for place, day in enumerate(days.tolist()))


@pytest.mark.parametrize("rule", [pure_days, lambda w, **k: reserve_days(w, **k, reserve=0.05)])
def test_more_budget_never_answers_less(rule: object) -> None:
    found = [rule(WATCH, verdicts=VERDICTS, budget=budget) for budget in (0.1, 0.3, 1.0, math.inf)]  # type: ignore[operator]
    assert all((low <= high).all() for low, high in itertools.pairwise(found))
    assert (found[-1] == len(VERDICTS)).all()
