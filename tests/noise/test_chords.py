"""The enclosure by chords holds the draw whatever its 64 bits are, and is far narrower than its cell."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from dpselect.noise.entropy import SeededEntropy
from dpselect.noise.quantiles import CELLS, EXPONENTIAL, GUMBEL, LAPLACE, NORMAL, Law
from dpselect.noise.scan import NoisyThreshold

every_law = pytest.mark.parametrize("law", [NORMAL, LAPLACE, EXPONENTIAL, GUMBEL], ids=lambda law: law.name)
LAST = (1 << 48) - 1


def prefixes(law: Law, number: int) -> list[int]:
    """Random draws, and the ends and middles of cells at both borders and around the turn."""
    source = random.Random(7)
    turn = int(law.turn * CELLS)
    cells = [*range(8), *range(CELLS - 8, CELLS), *range(max(turn - 6, 0), turn + 6)]
    cells += [source.randrange(CELLS) for _ in range(number)]
    inside = [0, 1, LAST, 1 << 47, source.randrange(LAST)]
    return [cell << 48 | inside[at % 5] for at, cell in enumerate(cells)] + [cell << 48 for cell in cells[:40]]


def misses(law: Law, number: int) -> int:
    """How many enclosures do not hold the ends of their draw, as ball arithmetic finds them."""
    found = 0
    for prefix in prefixes(law, number):
        ends = law.enclose_by_chords(prefix)
        if ends is not None:
            least, most = law.enclose(prefix=prefix, length=64)
            found += not (ends[0] <= least and most <= ends[1])
    return found


@every_law
def test_the_draw_lies_between_the_chords(law: Law) -> None:
    assert misses(law, 1500) == 0


@every_law
@pytest.mark.slow
def test_many_draws_lie_between_the_chords(law: Law) -> None:
    assert misses(law, 100_000) == 0


@every_law
def test_chords_drawn_on_the_wrong_side_miss_the_draw(law: Law) -> None:
    assert misses(replace(law, turn=1.0 if law is EXPONENTIAL else 0.0), 200) > 50


@every_law
def test_nearly_every_enclosure_is_narrow(law: Law) -> None:
    source = random.Random(8)
    widths = []
    for _ in range(2000):
        ends = law.enclose_by_chords(source.randrange(1 << 64))
        widths.append(1.0 if ends is None else ends[1] - ends[0])
    assert sum(width < 2.0**-23 for width in widths) > 0.9 * len(widths)


@every_law
def test_the_quick_cut_lies_around_the_exact_one(law: Law) -> None:
    for seed in range(300):
        ratio = 10.0 ** random.Random(seed).uniform(-2.0, 1.0)
        run = NoisyThreshold(0.3, scale_threshold=ratio, scale_query=1.0, law=law, entropy=SeededEntropy(seed))
        quick = run._quick_cut()
        if quick is not None:
            below, above = run._cut(run._exact.threshold)
            assert quick[0] <= below <= above <= quick[1]
            assert quick[1] - quick[0] < 2.0**-22
