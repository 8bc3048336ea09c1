"""What a figure is: work in parts at some size, a drawing, a caption, a small table, and the paper's claims it decides.

A part is plain parameters with their own random numbers, so that any process can compute it. One that names a
``series`` is measured on that data set, and its rows say so. Random numbers here are NumPy's, seeded by the parameters:
the figures are simulations on public data, not private releases, and the same parameters must give the same figure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from dpselect.checks import FloatArray
from lebensold2024.datasets import load
from lebensold2024.style import under_rules

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

#: The parameters of one piece of work; JSON can write them.
Part: TypeAlias = dict[str, Any]

#: Names with a value each, or with an array for several rows at once.
Row: TypeAlias = dict[str, Any]

#: A part and, where it names one, its series → rows.
Measure: TypeAlias = Callable[..., Iterable[Row]]

#: A tidy pandas table, one observation per row. What a cell holds is not in its type, so neither is it in this one.
Table: TypeAlias = Any


@dataclass(frozen=True)
class Size:
    """How much work every figure is given."""

    #: Shown in the report.
    name: str
    #: Points along each side of a heat map, and along a curve, which is also noise levels per panel.
    grid: int
    curve: int
    #: Selections per point of an offline figure, and simulated stopping times per noise level.
    trials: int
    stopping: int
    #: Passes over the stream per point of an online figure, and how many of its panels are computed.
    runs: int
    panels: int
    #: Noise levels tried for each clip and ratio when tuning.
    tuning: int
    #: Normal draws per Monte Carlo estimate on a processor, and how many estimates.
    samples: int
    estimates: int
    #: Of the shorter stream of rare events; the longer one has ten times as many.
    questions: int = 1000


#: The paper's sizes, though a processor takes a smaller Monte Carlo sample, and says so; the same figures in a minute
#: or two; and enough for a test to see that every figure can be drawn.
FULL = Size("full", 20, 21, 1000, 10_000, 50, 6, 8, 1_000_000, 40)
QUICK = Size("quick", 12, 11, 200, 2_000, 12, 3, 4, 200_000, 10)
TINY = Size("tiny", 4, 4, 20, 100, 3, 1, 1, 20_000, 4, questions=200)

Verdict: TypeAlias = Literal["held", "did not hold", "depends", "not judged: simulated data"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of the paper with its verdict: one line of the claims table."""

    #: The place in the paper that is judged, and what it says, in our words.
    where: str
    claim: str
    #: When it counts as held, in one sentence.
    rule: str
    #: "depends" on a reading that the paper leaves open, named in ``found``.
    verdict: Verdict
    #: The numbers, and where they were found.
    found: str
    setting: str


def held_if(*readings: bool) -> Verdict:
    """Held under every reading that the paper leaves open, under none, or it depends.

    >>> held_if(True, True), held_if(True, False), held_if(False)
    ('held', 'depends', 'did not hold')
    """
    return "held" if all(readings) else "depends" if any(readings) else "did not hold"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of the report."""

    #: What it shows.
    title: str
    #: The work at some size in independent parts, and how one is computed: a function that other processes can find.
    parts: Callable[[Size], Iterable[Part]]
    measure: Measure
    #: The drawing of the whole table, and what the reader sees in it, in a sentence or two.
    draw: Callable[[Table], Drawing]
    caption: Callable[[Table], str]
    #: A small table that the page shows under the drawing.
    numbers: Callable[[Table], Table] | None = None
    #: The paper's claims that the table decides.
    claims: Callable[[Table], Iterable[Claim]] = lambda table: ()
    #: Further parts that the data folder holds.
    found: Callable[[Path | None], list[Part]] = lambda data: []

    def work(self, size: Size, *, data: Path | None = None) -> list[Part]:
        """All parts; one on a series changes with its values."""
        return [part | _fingerprint(part, data=data) for part in (*self.parts(size), *self.found(data))]

    def compute(self, size: Size = QUICK, *, data: Path | None = None) -> Table:
        """All parts, one after the other, in one table."""
        return tidy(measured(self.measure, part, data=data) for part in self.work(size, data=data))

    def drawn(self, table: Table) -> Drawing:
        """The drawing under the house rules; one of a stand-in says so across its top."""
        return under_rules(self.draw, table, simulated=is_simulated(table))

    def judged(self, table: Table) -> list[dict[str, str]]:
        """Its claims as rows; on a stand-in the numbers are kept and no verdict is given."""
        verdict = {"verdict": "not judged: simulated data"} if is_simulated(table) else {}
        return [asdict(claim) | verdict for claim in self.claims(table)]


def _fingerprint(part: Part, *, data: Path | None) -> Part:
    return {"fingerprint": load(part["series"], data=data).fingerprint} if "series" in part else {}


def measured(measure: Measure, part: Part, *, data: Path | None = None) -> Table:
    """One part's table."""
    if "series" not in part:
        return tidy(measure(part))
    series = load(part["series"], data=data)
    names = {"series": part["series"], "label": series.label, "simulated": series.simulated}
    return tidy(names | row for row in measure(part, series))


def tidy(pieces: Iterable[Table | Row]) -> Table:
    """One table of several, or of rows.

    >>> tidy([{"x": [1, 2], "y": 0}, {"x": 3, "y": 1}])["x"].tolist()
    [1, 2, 3]
    """
    many = ((piece, any(map(np.ndim, dict(piece).values()))) for piece in pieces)
    return pd.concat([pd.DataFrame(piece if several else [piece]) for piece, several in many], ignore_index=True)


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


def series_in(table: Table) -> str:
    """The series behind a table, for its caption."""
    return "; ".join(dict.fromkeys(table["label"]))


def interval(values: Any) -> tuple[float, float]:
    """The mean and half of its 95% interval.

    >>> tuple(round(part, 3) for part in interval([1.0, 2.0, 3.0]))
    (2.0, 1.132)
    """
    numbers = np.asarray(values, dtype=np.float64)
    return float(numbers.mean()), 1.96 * float(numbers.std(ddof=1)) / float(np.sqrt(len(numbers)))


def intervals(table: Table, column: str, *, by: str) -> FloatArray:
    """What the table is grouped by, the means of a column, and half of their 95% intervals: ready to be drawn."""
    return np.array([(place, *interval(values)) for place, values in table.groupby(by)[column]]).T


def least_cost(table: Table, *, reach: str, at_least: float) -> float:
    """The ε at which one curve's column ``reach`` first is ``at_least`` this; infinite if never.

    Taken between the two nearest points of the curve, straight in log ε.

    >>> table = pd.DataFrame({"epsilon": [0.1, 1.0], "f1": [0.5, 0.7]})
    >>> round(least_cost(table, reach="f1", at_least=0.6), 4), least_cost(table, reach="f1", at_least=0.8)
    (0.3162, inf)
    """
    curve = table.sort_values("epsilon")
    epsilon, reached = curve["epsilon"].to_numpy(), np.maximum.accumulate(curve[reach].to_numpy())
    place = int(np.searchsorted(reached, at_least))
    if place in (0, len(reached)):
        return float(epsilon[0]) if place == 0 else float("inf")
    share = (at_least - reached[place - 1]) / (reached[place] - reached[place - 1])
    return float(np.exp((1 - share) * np.log(epsilon[place - 1]) + share * np.log(epsilon[place])))
