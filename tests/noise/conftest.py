"""A judge that works at 2,000 bits, and random sources whose bits a test can choose or look at."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import flint
import numpy as np
import pytest

from dpselect.noise.draw import LazyDraw
from dpselect.noise.entropy import SeededEntropy
from dpselect.noise.quantiles import FIRST_TAIL_CELL, Law

JUDGE_BITS = 2000


class WatchedEntropy(SeededEntropy):
    """Seeded bits; remembers what was handed out, and can be told which cells to name first."""

    def __init__(self, seed: int, *, cells: list[int] | None = None) -> None:
        super().__init__(seed)
        self.scripted = list(cells or [])
        self.words_given: list[np.ndarray[Any, Any]] = []

    def cell(self) -> int:
        return self.scripted.pop(0) if self.scripted else super().cell()

    def words(self, count: int, /, *, dtype: Any) -> np.ndarray[Any, Any]:
        given = np.array(super().words(count, dtype=dtype))
        if np.dtype(dtype) == np.uint16:
            scripted = [self.scripted.pop(0) for _ in range(min(count, len(self.scripted)))]
            given[: len(scripted)] = scripted
        self.words_given.append(given)
        return given

    def prefixes(self, candidates: int) -> list[tuple[int, int]]:
        """The bits every candidate of a one-block noisy maximum got at once: (prefix, length) each."""
        cells = self.words_given[0][:candidates].tolist()
        # What came with the cells serves the tail, unless it is too little.
        spare = self.words_given[0][candidates:].view(np.uint8).tolist()
        tail = sum(cell >= FIRST_TAIL_CELL for cell in cells)
        tail_bytes = spare if tail <= len(spare) else self.words_given[1].tolist()
        return [(c << 8 | tail_bytes.pop(0), 24) if c >= FIRST_TAIL_CELL else (c, 16) for c in cells]


class Bits(Protocol):
    """Where the judge finds the bits that the release did not draw."""

    def bits(self, count: int, /) -> int: ...


class AllZeros:
    """The lowest draw that the bits drawn so far allow."""

    def bits(self, count: int, /) -> int:
        return 0


class AllOnes:
    """The highest draw that the bits drawn so far allow."""

    def bits(self, count: int, /) -> int:
        return (1 << count) - 1


def judged_score(value: Fraction, *, scale: Fraction, law: Law, prefix: int, length: int, more: Bits) -> Any:
    """value + scale · Q(u) with u known to 2,000 bits: the given ones, then ``more``."""
    missing = JUDGE_BITS - length
    bits = prefix << missing | more.bits(missing)
    with flint.ctx.workprec(JUDGE_BITS + 2200):
        end = law.ball(max(bits, 1), length=JUDGE_BITS)
        shift = flint.arb(flint.fmpq(value.numerator, value.denominator))
        return shift + flint.arb(flint.fmpq(scale.numerator, scale.denominator)) * end


def judged_winner(
    values: list[Fraction],
    *,
    scale: Fraction,
    law: Law,
    prefixes: list[tuple[int, int]],
    draws: dict[int, LazyDraw],
    chosen: int,
) -> int:
    """The largest noisy value at 2,000 bits, with the random bits that the release drew.

    What the release did not draw must not matter: the chosen candidate continues with the worst bits there
    are, the others with the best.
    """
    known = [(draws[i].prefix, draws[i].length) if i in draws else prefixes[i] for i in range(len(values))]
    with flint.ctx.workprec(JUDGE_BITS + 2200):
        judged = [
            judged_score(
                value,
                scale=scale,
                law=law,
                prefix=prefix,
                length=length,
                more=AllZeros() if i == chosen else AllOnes(),
            )
            for i, (value, (prefix, length)) in enumerate(zip(values, known, strict=True))
        ]
        if all(score < judged[chosen] for i, score in enumerate(judged) if i != chosen):
            return chosen
        return next(i for i, score in enumerate(judged) if i != chosen and not score < judged[chosen])


@pytest.fixture(scope="session")
def watched() -> type[WatchedEntropy]:
    return WatchedEntropy


@pytest.fixture(scope="session")
def judge() -> Any:
    return judged_winner


@pytest.fixture(scope="session")
def judge_score() -> Any:
    return judged_score


@pytest.fixture(scope="session")
def extremes() -> tuple[Bits, Bits]:
    return AllZeros(), AllOnes()
