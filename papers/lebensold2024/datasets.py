"""The paper's data sets, each a daily series divided by its largest day, or a stand-in that says so.

Files are looked for in the folder given, or else in the one named by the environment variable ``DPSELECT_DATA``:

``uci_bikes_day.csv`` (or ``day.csv``)
    UCI Bike Sharing, as published: columns ``dteday``, ``registered``. Checked against its SHA-256.
``lcl_daily_totals.csv``
    Low Carbon London by day: columns ``day``, ``energy_sum_5564`` (kWh over the 5,564 homes that have an ACORN class)
    and ``households_5564`` (homes with a row that day).
``ausgrid_daily_totals.csv``
    Ausgrid solar homes ("NEAR"): columns ``date``, ``gc_kwh_total``, general consumption over the 300 homes. Only this
    daily total is used; readings per home are not needed, because Δ = 1/N is the paper's assumption.

The largest day is treated as public, and Δ = 1/N, as in the paper; neither follows from the data (THEORY §9).
:mod:`lebensold2024.sources` says where the files come from.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from dpselect.checks import FloatArray, refuse
from dpselect.errors import SourceError
from dpselect.privacy.family import QueryFamily

#: The environment variable that names the data folder.
DATA_VARIABLE = "DPSELECT_DATA"

#: What ``benchmarks/monte_carlo.py --gpu --json`` writes; drawn when it lies in the data folder.
GPU_RESULTS = "monte_carlo_gpu.json"


@dataclass(frozen=True, kw_only=True)
class Series:
    """One query per day, in [0, 1].

    Parameters
    ----------
    label : str
        What figures call it; ends in "(simulated)" for a stand-in.
    values : array
        Each day as a share of the largest.
    population : int
        N; one person moves a day by at most Δ = 1/N.
    simulated : bool
        Whether this is a stand-in.
    """

    label: str
    values: FloatArray = field(repr=False)
    population: int
    simulated: bool

    @property
    def fingerprint(self) -> str:
        """Changes with the values."""
        return hashlib.sha256(np.ascontiguousarray(self.values).tobytes()).hexdigest()[:16]

    @property
    def delta(self) -> float:
        """1/N: one person's share of a day (Δ), and the δ of the paper's online comparisons."""
        return 1.0 / self.population

    def family(self, *, monotone: bool = False) -> QueryFamily:
        """Range [0, 1] and Δ = 1/N."""
        return QueryFamily(lower=0.0, upper=1.0, sensitivity=self.delta, monotone=monotone)


@dataclass(frozen=True, kw_only=True)
class _Source:
    """Where a series is read, which of its days, and what stands in for it."""

    label: str
    population: int
    files: tuple[str, ...]
    day: str
    column: str
    standin: Callable[[], FloatArray]
    #: Divide by this column: homes metered that day.
    over: str | None = None
    #: The first day taken and the first one after them; all without it.
    days: tuple[int | None, int | None] = (None, None)
    own_unit: bool = False
    sha256: str | None = None

    def read(self, path: Path) -> FloatArray:
        """Every day as a share of the largest; refused unless each day is there once, in order, with its number."""
        if self.sha256 is not None and hashlib.sha256(path.read_bytes()).hexdigest() != self.sha256:
            raise SourceError(f"{path.name} is not the published file: its SHA-256 is not {self.sha256}")
        columns = [self.column] if self.over is None else [self.column, self.over]
        try:
            frame = pd.read_csv(path, usecols=[self.day, *columns])
            numbers = frame[columns].to_numpy(dtype=np.float64)
        except (OSError, ValueError) as failure:
            raise SourceError(f"{path.name} cannot be read: {failure}") from None
        days = pd.to_datetime(frame[self.day], errors="coerce")
        if not (
            numbers.size and np.isfinite(numbers).all() and (numbers >= 0).all() and (numbers > 0).any(axis=0).all()
        ):
            raise SourceError(f"{path.name} must hold a number for every day, none negative ({', '.join(columns)})")
        if not (days.diff().iloc[1:] == pd.Timedelta(days=1)).all():
            raise SourceError(f"{path.name} must hold one row per day, in order, none missing (column {self.day!r})")
        return _share_of_largest(numbers[:, 0] if self.over is None else numbers[:, 0] / numbers[:, 1])


def load(name: str, *, data: Path | None = None) -> Series:
    """The series of that name, from the data folder or simulated.

    Parameters
    ----------
    name : str
        A key of :data:`SERIES`.
    data : Path, optional
        The data folder; without it, the one ``DPSELECT_DATA`` names; without either, a stand-in.

    Examples
    --------
    >>> series = load("uci-90", data=None)
    >>> len(series.values), series.population
    (90, 6946)
    """
    if name not in SERIES:
        raise refuse("name", name, f"one of {', '.join(SERIES)}")
    return _load(name, data_folder(data))


def data_folder(data: Path | None) -> Path | None:
    """The folder to read: the one given, or the environment's, or none; refused where it does not exist."""
    named = data if data is not None else os.environ.get(DATA_VARIABLE) or None
    if named is None:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise SourceError(f"the data folder {str(folder)!r} does not exist; give another, or none to use stand-ins")
    return folder.resolve()


@cache
def _load(name: str, folder: Path | None) -> Series:
    source = SERIES[name]
    found = None if folder is None else next((folder / f for f in source.files if (folder / f).is_file()), None)
    days = slice(*source.days)
    chosen = np.array((source.standin() if found is None else source.read(found))[days])
    expected = len(source.standin()[days])
    if found is not None and len(chosen) != expected:
        raise SourceError(f"{found.name} has {len(chosen)} of the {expected} days that {source.label!r} needs")
    if source.own_unit:
        chosen = _share_of_largest(chosen)
    chosen.setflags(write=False)
    label = source.label if found is not None else f"{source.label} (simulated)"
    return Series(label=label, values=chosen, population=source.population, simulated=found is None)


def _share_of_largest(values: FloatArray) -> FloatArray:
    return np.asarray(values / values.max())


# Stand-ins have the size and the rough shape of the real series. They keep every figure drawable; what is drawn from
# them is labelled "simulated" and judges no claim.


def _bicycle_days() -> FloatArray:
    """731 days of a growing bicycle share: a yearly wave, growth, wet days."""
    rng = np.random.default_rng(2011)
    day = np.arange(731)
    wave = 0.55 - 0.35 * np.cos(2 * np.pi * (day - 15) / 365.25)
    level = wave * (0.62 + 0.38 * day / 730) * (1 - 0.45 * (rng.random(731) < 0.12)) + rng.normal(0, 0.05, 731)
    return _share_of_largest(np.maximum(level, 0.0))


def _meter_days() -> FloatArray:
    """829 days of a smart-meter trial: homes joining for half a year, then winters above summers."""
    rng = np.random.default_rng(2012)
    day = np.arange(829)
    joined = 1 / (1 + np.exp(-(day - 190) / 35))
    season = 0.68 + 0.2 * np.cos(2 * np.pi * (day - 60) / 365.25) + 0.03 * (day % 7 >= 5)
    return _share_of_largest(np.maximum(joined * season + rng.normal(0, 0.02, 829), 0.0))


def _home_days() -> FloatArray:
    """364 days of household load: two cool seasons, and a few hot days far above the rest."""
    rng = np.random.default_rng(2010)
    day = np.arange(364)
    level = 0.36 + 0.06 * np.cos(4 * np.pi * (day - 15) / 365) + rng.normal(0, 0.02, 364)
    hot = rng.choice(np.arange(160, 250), size=9, replace=False)
    level[hot] += np.geomspace(0.06, 0.6, 9)
    return _share_of_largest(np.maximum(level, 0.0))


_BIKES = _Source(
    label="UCI Bikes, 731 days",
    population=6946,
    files=("uci_bikes_day.csv", "day.csv"),
    day="dteday",
    column="registered",
    standin=_bicycle_days,
    sha256="a6bcf826782d3c0fbfdcbeead17cd0884185a0dafe8ff10cd48a874ee7ba18be",
)
_METERS = _Source(
    label="LCL total, 829 days",
    population=5564,
    files=("lcl_daily_totals.csv",),
    day="day",
    column="energy_sum_5564",
    standin=_meter_days,
)
_HOMES = _Source(
    label="NEAR, 364 days",
    population=300,
    files=("ausgrid_daily_totals.csv",),
    day="date",
    column="gc_kwh_total",
    days=(0, 364),  # the first year holds the three years' largest day
    standin=_home_days,
)

#: The series by name. The paper names no dates; where it takes part of a series, these days were chosen because they
#: hold its largest one: UCI's last 365 days and the 90 up to 2012-09-30; calendar year 2013 of LCL; NEAR from
#: 2010-07-01. "A year" of UCI online may be either calendar year or, as the public file goes, both; each keeps the
#: public N = 6,946 as its unit, except one that is measured by its own largest day.
SERIES: dict[str, _Source] = {
    "uci": _BIKES,
    "uci-2011": replace(_BIKES, label="UCI Bikes, 2011", days=(0, 365)),
    "uci-2011-own": replace(
        _BIKES, label="UCI Bikes, 2011, of its own largest day", days=(0, 365), population=4614, own_unit=True
    ),
    "uci-2012": replace(_BIKES, label="UCI Bikes, 2012", days=(365, 731)),
    "uci-365": replace(_BIKES, label="UCI Bikes, 365 days", days=(366, 731)),
    "uci-90": replace(_BIKES, label="UCI Bikes, 90 days", days=(549, 639)),
    "lcl": _METERS,
    "lcl-365": replace(_METERS, label="LCL total, 365 days", days=(405, 770)),
    "lcl-mean": replace(_METERS, label="LCL mean per home, 829 days", over="households_5564"),
    "near": _HOMES,
}
