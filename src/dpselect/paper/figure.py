"""What a figure is: work in parts, a drawing, a short caption, a small table of numbers and the claims it decides.

A part is plain parameters with their own random numbers, so that any process can compute it. Random numbers here are
NumPy's, seeded by the parameters: the figures are simulations on public data, not private releases, and the same
parameters must give the same figure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import pandas as pd

from dpselect.paper.claims import Claim
from dpselect.paper.sizes import QUICK, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

#: The parameters of one piece of work; JSON can write them.
Part: TypeAlias = dict[str, Any]

#: A tidy pandas table, one observation per row. What a cell holds is not in its type, so neither is it in this one.
Table: TypeAlias = Any


class Parts(Protocol):
    """Parameters of independent pieces of work."""

    def __call__(self, size: Size, *, data: Path | None) -> list[Part]:
        """The pieces at this size; ``data`` is the folder of the data sets."""
        ...


class Measure(Protocol):
    """One piece of work."""

    def __call__(self, part: Part, *, data: Path | None) -> Table:
        """The piece as a tidy table."""
        ...


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of the report.

    Parameters
    ----------
    title : str
        What it shows.
    parts, measure : callable
        The work, in pieces, and one piece as a tidy table.
    draw : callable
        The drawing of the whole table.
    caption : callable
        What the reader sees, in a sentence or two.
    numbers : callable
        A small table that the page shows under the drawing.
    claims : callable
        The paper's claims that the table decides.
    """

    title: str
    parts: Parts
    measure: Measure
    draw: Callable[[Table], Drawing]
    caption: Callable[[Table], str]
    numbers: Callable[[Table], Table] | None = None
    claims: Callable[[Table], Iterable[Claim]] = lambda table: ()

    def compute(self, size: Size = QUICK, *, data: Path | None = None) -> Table:
        """All pieces, one after the other, in one table."""
        return pd.concat([self.measure(part, data=data) for part in self.parts(size, data=data)], ignore_index=True)


def digest_of(part: Part) -> str:
    """A name for the parameters that changes with any of them.

    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(part, sort_keys=True, allow_nan=False).encode()).hexdigest()


def generator_of(part: Part) -> np.random.Generator:
    """Random numbers that belong to these parameters.

    >>> generator_of({"a": 1}).random() == generator_of({"a": 1}).random()
    True
    """
    return np.random.default_rng(int(digest_of(part), 16))


def is_simulated(table: Table) -> bool:
    """Whether a stand-in was used.

    >>> is_simulated(pd.DataFrame({"simulated": [False, True]}))
    True
    """
    return "simulated" in table.columns and bool(table["simulated"].any())
