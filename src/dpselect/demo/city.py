"""A simulated city of electricity meters: one row per meter and day, from a seed."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

import numpy as np

from dpselect.checks import FloatArray, counts

if TYPE_CHECKING:
    import pyarrow

#: The demonstration's year.
FIRST_DAY = date(2025, 1, 1)


def simulate_city(*, meters: int = 2000, days: int = 365, seed: int = 7) -> pyarrow.Table:
    """Daily readings of a city that does not exist: columns ``meter`` (text), ``day`` (date) and ``kwh`` (double).

    Homes differ by a lognormal factor around 9 kWh a day. All share the season, the weekend and the weather,
    which has two cold spells; each has good and bad days of its own. About one reading in fifty is missing.

    Parameters
    ----------
    meters, days : int
        The size of the city, and how many days there are from the first of January 2025.
    seed : int
        The same seed gives the same city.

    Examples
    --------
    >>> city = simulate_city(meters=10, days=7, seed=1)
    >>> city.column_names, 60 <= city.num_rows <= 70
    (['meter', 'day', 'kwh'], True)
    >>> city.equals(simulate_city(meters=10, days=7, seed=1))
    True
    """
    import pyarrow

    homes, length = int(counts("meters", meters, least=1)), int(counts("days", days, least=1))
    random = np.random.default_rng(seed)
    level = 9.0 * np.exp(random.normal(scale=0.45, size=homes))
    heating = random.uniform(0.3, 1.7, size=homes)
    season, weather, weekend = _shared_by_all(length, random)
    shape = weekend[None, :] * (1.0 + heating[:, None] * (season + weather)[None, :])
    kwh = level[:, None] * np.maximum(shape, 0.1) * np.exp(random.normal(scale=0.25, size=(homes, length)))
    there = random.random((homes, length)) >= 0.02
    names = pyarrow.array([f"meter-{number:05d}" for number in range(1, homes + 1)])
    calendar = pyarrow.array([FIRST_DAY + timedelta(days=number) for number in range(length)])
    which, when = np.nonzero(there)
    return pyarrow.table(
        {
            "meter": names.take(pyarrow.array(which)),
            "day": calendar.take(pyarrow.array(when)),
            "kwh": np.round(kwh[there], 3),
        }
    )


def _shared_by_all(length: int, random: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The season, the weather and the weekend, one number a day."""
    number = np.arange(length)
    season = 0.25 * np.cos(2 * np.pi * (number - 20) / 365.25)
    weather = np.zeros(length)
    for today in range(1, length):
        weather[today] = 0.75 * weather[today - 1] + random.normal(scale=0.03)
    # Two cold spells: what the demonstration looks for.
    for middle, depth in ((38, 0.95), (344, 0.7)):
        weather += depth * np.exp(-0.5 * np.square((number - middle) / 2.2))
    weekend = np.where((number + FIRST_DAY.weekday()) % 7 >= 5, 1.06, 1.0)
    return season, weather, weekend
