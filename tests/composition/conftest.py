"""Entropy that forces answers, so that every reachable transcript can be visited with the real code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

from dpselect.noise.entropy import SeededEntropy


class ForcedEntropy(SeededEntropy):
    """Thresholds without noise, and for each question the outermost cell on the wanted side.

    The outermost of 65,536 normal cells starts at 4.17 standard deviations, so the answer is the wanted one while a
    value is less than 4 σ_Z away from the threshold. The tests check that it was.
    """

    def __init__(self, answers: list[bool]) -> None:
        super().__init__(0)
        self._answers: Iterator[bool] = iter(answers)

    def cell(self) -> int:
        return 65535 if next(self._answers) else 0

    def bits(self, count: int, /) -> int:
        return 1 << (count - 1)

    def words(self, count: int, /, *, dtype: DTypeLike) -> NDArray[Any]:
        return np.array([self.cell() for _ in range(count)], dtype=dtype)


@pytest.fixture(scope="session")
def forced_entropy() -> type[ForcedEntropy]:
    return ForcedEntropy
