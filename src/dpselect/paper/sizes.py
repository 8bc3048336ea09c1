"""How much work a figure is given: the paper's own numbers, a quick look, or next to nothing for tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Size:
    """The counts every figure takes its grids and trials from.

    Parameters
    ----------
    name : str
        Shown in the report.
    grid : int
        Points along each side of a heat map.
    curve : int
        Points along a curve, and noise levels per panel.
    trials : int
        Selections per point of an offline figure.
    stopping : int
        Simulated stopping times per noise level.
    runs : int
        Passes over the stream per point of an online figure.
    panels : int
        How many panels of an online figure are computed.
    tuning : int
        Noise levels tried for each clip and ratio when tuning.
    questions : int
        Of the shorter stream of rare events; the longer one has ten times as many.
    samples, estimates : int
        Normal draws per Monte Carlo estimate on a processor, and how many estimates.

    Examples
    --------
    >>> FULL.runs, FULL.trials, FULL.stopping
    (50, 1000, 10000)
    """

    name: str
    grid: int
    curve: int
    trials: int
    stopping: int
    runs: int
    panels: int
    tuning: int
    questions: int
    samples: int
    estimates: int


#: The paper's sizes; Monte Carlo on a processor takes a smaller sample, and says so.
FULL = Size(
    name="full",
    grid=20,
    curve=21,
    trials=1000,
    stopping=10_000,
    runs=50,
    panels=6,
    tuning=8,
    questions=1000,
    samples=1_000_000,
    estimates=40,
)

#: The same figures in a minute or two.
QUICK = Size(
    name="quick",
    grid=12,
    curve=11,
    trials=200,
    stopping=2_000,
    runs=12,
    panels=3,
    tuning=4,
    questions=1000,
    samples=200_000,
    estimates=10,
)

#: Enough to see that every figure can be drawn.
TINY = Size(
    name="tiny",
    grid=4,
    curve=4,
    trials=20,
    stopping=100,
    runs=3,
    panels=1,
    tuning=1,
    questions=200,
    samples=20_000,
    estimates=4,
)
