"""The batched path compares exactly: it agrees with ball arithmetic on the same random bits, whatever the values."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

from dpselect.noise.entropy import SeededEntropy
from dpselect.noise.quantiles import EXPONENTIAL, GUMBEL, LAPLACE, NORMAL, Law
from dpselect.noise.rows import noisy_argmax_rows, scan_rows

TINY = 5e-324
HARD = {
    "ties": np.array([0.5, 0.5, 0.5, 0.5]),
    "last bits": np.array([1.0, np.nextafter(1.0, 2), np.nextafter(1.0, 0), 1.0]),
    "subnormal gaps": np.array([0.0, TINY, 2 * TINY, -TINY]),
    "far from the origin": 2.0**52 + np.array([0.0, 1.0, 2.0, 3.0]),
    "opposite giants": np.array([1e308, -1e308, 1e308, 0.0]),
    "giants in giant noise": np.array([-1.5e308, 1.5e308, 0.35e308, 0.2e308]),
}
#: The noise that fits the values; differences of the last ones leave the doubles, and distances do not.
SCALES = {name: Fraction(3 * 10**307 if name == "giants in giant noise" else 1) for name in HARD}
LAWS = [NORMAL, LAPLACE, GUMBEL, EXPONENTIAL]
every_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)


def ends(law: Law, cell: int) -> tuple[Any, Any]:
    lower, upper = law.balls(prefix=cell, length=16)
    return lower if lower is not None else flint.arb.neg_inf(), upper if upper is not None else flint.arb.pos_inf()


def ball(value: float) -> Any:
    return flint.arb(flint.fmpq(*Fraction(float(value)).as_integer_ratio()))


@every_law
@pytest.mark.parametrize("name", HARD)
def test_winners_known_from_sixteen_bits_are_those_of_ball_arithmetic(name: str, law: Law) -> None:
    values = np.broadcast_to(HARD[name], (300, 4))
    unit, scale = ball(float(SCALES[name])), float(SCALES[name])
    winners = noisy_argmax_rows(values, scale=scale, law=law, entropy=SeededEntropy(3))
    cells = SeededEntropy(3).words(1200, dtype=np.uint16).reshape(300, 4)
    decided = 0
    with flint.ctx.workprec(4000):
        for row in range(300):
            known = [
                tuple(ball(values[row, i]) + unit * end for end in ends(law, int(cells[row, i]))) for i in range(4)
            ]
            for winner in range(4):
                if all(known[winner][0] > known[i][1] for i in range(4) if i != winner):
                    decided += 1
                    assert winners[row] == winner
    assert decided > (0 if name == "opposite giants" else 250)


@every_law
def test_equal_scores_win_equally_often(law: Law) -> None:
    winners = noisy_argmax_rows(np.zeros((400_000, 4)), scale=1e-300, law=law, entropy=SeededEntropy(5))
    counts = np.bincount(winners, minlength=4)
    assert np.sum((counts - 100_000) ** 2) / 100_000 < 30.7  # χ² with 3 degrees of freedom at 1e-6


@pytest.mark.parametrize("law", [NORMAL, LAPLACE], ids=lambda law: law.name)
@pytest.mark.parametrize("name", HARD)
def test_verdicts_known_from_sixteen_bits_are_those_of_ball_arithmetic(name: str, law: Law) -> None:
    values, threshold = np.broadcast_to(HARD[name], (300, 4)), float(HARD[name][0])
    unit = SCALES[name] / 3
    exact = float if unit > 2**1000 else Fraction
    scales = {"scale_threshold": exact(unit), "scale_query": exact(2 * unit)}
    first, second = (flint.arb(flint.fmpq(*Fraction(scale).as_integer_ratio())) for scale in scales.values())
    verdicts = scan_rows(values, threshold=threshold, **scales, law=law, entropy=SeededEntropy(3), until="all")
    entropy = SeededEntropy(3)
    own = entropy.words(300, dtype=np.uint16)
    cells = entropy.words(1200, dtype=np.uint16).reshape(300, 4)
    decided = 0
    with flint.ctx.workprec(4000):
        for row in range(300):
            line = [ball(threshold) + first * end for end in ends(law, int(own[row]))]
            for i in range(4):
                known = [ball(values[row, i]) + second * end for end in ends(law, int(cells[row, i]))]
                if known[0] > line[1]:
                    decided += 1
                    assert verdicts[row, i] == 1
                elif known[1] < line[0]:
                    decided += 1
                    assert verdicts[row, i] == 0
    assert decided > 1000
