"""The time of an answer does not tell whether more persons came than the public population."""

from __future__ import annotations

import random
import sys
from fractions import Fraction
from types import FrameType

import numpy as np
import pytest

from dpselect.tables import Question
from dpselect.tables.answer import BoundedQuery


def query(question: Question, totals: list[int]) -> BoundedQuery:
    cut = tuple(min(total, question.most_steps) for total in totals)
    labels = tuple(map(str, range(len(totals))))
    return BoundedQuery(labels=labels, family=question.family, totals=cut, step=question.step, uncut=tuple(totals))


def ask(**changes) -> Question:
    return Question(**{"user": "u", "time": "t", "value": "v", "cap": 50, "population": 5564} | changes)


def steps(totals: list[int]) -> int:
    """Lines of the package that run for the values."""
    made, lines = query(ask(), totals), 0

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal lines
        if "dpselect" not in frame.f_code.co_filename:
            return None
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert len(made.uncut_values) == len(totals)
    finally:
        sys.settrace(before)
    return lines


def test_one_total_beyond_the_population_takes_no_more_steps() -> None:
    """It sent all values through rational arithmetic: 149 µs became 6,292 µs."""
    chance = random.Random(1)
    usual = [chance.randrange(ask().most_steps) for _ in range(1000)]
    exceeded = [*usual[:-1], ask().most_steps + 1]
    assert steps(exceeded) == steps(usual) > 0


def test_uncut_values_are_doubles_whatever_the_totals() -> None:
    for totals in ([0, 1], [0, 10**15]):
        values = query(ask(), totals).uncut_values
        assert isinstance(values, np.ndarray)
        assert values.dtype == np.float64


@pytest.mark.parametrize("population", [1, 2, 7, 5564, 2**20, 2**30])
@pytest.mark.parametrize("measure", ["mean", "sum", "count"])
def test_one_person_moves_uncut_values_by_delta_at_most_and_one_way(population, measure) -> None:
    cap = None if measure == "count" else 50
    question = ask(population=population, measure=measure, cap=cap, grid=1 if cap is None else 1000)
    chance, most, grid = random.Random(population), question.most_steps, question.grid
    starts = [0, most - grid, most - 1, most, most + 1, *(most * 2**power for power in range(1, 24))]
    starts += [chance.randrange(3 * most) for _ in range(200)]
    before = query(question, starts).uncut_values
    for added in {0, 1, grid // 2, grid}:
        after = query(question, [start + added for start in starts]).uncut_values
        moved = [Fraction(float(new)) - Fraction(float(old)) for new, old in zip(after, before, strict=True)]
        assert all(0 <= one <= Fraction(question.family.sensitivity) for one in moved)


def test_values_beyond_the_population_are_told_apart() -> None:
    """A population that is too small costs no accuracy: days beyond it keep their order and nearly their size."""
    most = ask().most_steps
    values = query(ask(), [most // 2, most * 2, most * 3, most * 100]).uncut_values
    assert values[0] == 0.5
    assert np.allclose(values[1:], [2, 3, 100], rtol=2e-3)
