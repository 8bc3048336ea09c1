from __future__ import annotations

import pickle

import flint
import numpy as np
import pytest

from dpselect.noise.quantiles import (
    CELLS,
    EXPONENTIAL,
    FIRST_TAIL_CELL,
    GUMBEL,
    LAPLACE,
    NORMAL,
    Ends,
    Law,
    double_above,
    double_below,
)

LAWS = [NORMAL, LAPLACE, EXPONENTIAL, GUMBEL]
pytestmark = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)


def ends_that_are_not_outside(law: Law, ends: Ends, *, first: int, length: int) -> int:
    """How many of the finite ends of a table fail to lie outside the true end, by ball arithmetic."""
    wrong = 0
    with flint.ctx.workprec(96):
        for k in range(1, CELLS):
            true_end = law.ball(first + k, length=length)
            wrong += not flint.arb(ends.lower[k]) <= true_end
            wrong += not flint.arb(ends.upper[k - 1]) >= true_end
    return wrong


def test_every_cell_of_the_first_table_has_proven_ends(law: Law) -> None:
    assert ends_that_are_not_outside(law, law.cells, first=0, length=16) == 0
    assert law.cells.lower[0] <= law.least
    assert law.cells.upper[-1] == np.inf


def test_every_cell_of_the_tail_table_has_proven_ends(law: Law) -> None:
    first = FIRST_TAIL_CELL << 8
    assert ends_that_are_not_outside(law, law.tail_cells, first=first, length=24) == 0
    with flint.ctx.workprec(96):
        assert flint.arb(law.tail_cells.lower[0]) <= law.ball(first, length=24)
    assert law.tail_cells.upper[-1] == np.inf


def test_ends_that_are_not_moved_outward_fail_the_proof(law: Law) -> None:
    middle = (law.cells.lower[1:] + law.cells.upper[:-1]) / 2
    unmoved = Ends(lower=np.append(law.least, middle), upper=np.append(middle, np.inf))
    assert ends_that_are_not_outside(law, unmoved, first=0, length=16) > 1000


def test_ends_are_moved_by_far_less_than_a_cell(law: Law) -> None:
    for ends in (law.cells, law.tail_cells):
        moved = ends.upper[:-1] - ends.lower[1:]
        width = np.diff(ends.lower[1:])
        assert moved[1:].max() < 1e-10
        assert (moved[1:] < width / 1000).all()


def test_a_longer_prefix_is_inside_a_shorter_one(law: Law) -> None:
    prefix = 0b1011010111001011
    outer = law.enclose(prefix=prefix, length=16)
    inner = law.enclose(prefix=prefix << 64 | 0xDEADBEEF, length=80)
    assert outer[0] <= inner[0] < inner[1] <= outer[1]
    assert inner[1] - inner[0] < 1e-14 * (1 + abs(inner[0]))


def test_a_law_survives_pickling_as_itself(law: Law) -> None:
    assert pickle.loads(pickle.dumps(law)) is law  # noqa: S301


def test_doubles_around_a_ball_are_outside_it(law: Law) -> None:
    ball = law.ball(12345, length=16)
    assert flint.arb(double_below(ball)) < ball < flint.arb(double_above(ball))
    huge = flint.arb(10) ** 400
    assert double_above(huge) == np.inf
    assert double_below(huge) < np.inf
    assert double_below(-huge) == -np.inf
