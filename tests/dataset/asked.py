"""Questions of every kind, to compare how a ledger keeps them; nothing is read."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import dpselect as dp
from dpselect.dataset import WatchRequest
from dpselect.dataset.watch import plan_watch

_YEAR = {"start": "2013-01-01", "end": "2013-12-31"}
_MONTH = {"start": "2013-01-01", "end": "2013-01-31"}


def homes(**more: Any) -> Any:
    facts = {"user": "meter", "time": "at", "value": "kwh", "cap": 50, "population": 5566}
    return dp.Dataset("readings.csv", **(facts | more))


def series(**more: Any) -> Any:
    facts = {"time": "day", "value": "trips", "maximum": 6946, "population": 6946}
    return dp.Dataset("days.csv", **(facts | more))


def sales() -> Any:
    facts = {"user": "person", "category": "product", "value": "euro", "cap": Fraction(25, 2), "population": 100_000}
    return dp.Dataset("sales.csv", **facts)


def plans() -> dict[str, Any]:
    """A plan of every kind, by its name."""
    family = dp.QueryFamily(lower=0, upper=1, sensitivity=1e-4, monotone=True)
    return {
        "peak": homes().plan(epsilon=0.1, **_YEAR),
        "peak, unit": homes(unit="kWh").plan(epsilon=0.1, **_YEAR),
        "peak, smallest, top": homes().plan(epsilon=Fraction(1, 2), goal="smallest", top=3, **_YEAR),
        "peak, values": homes().plan(epsilon=1, top=2, how_much=True, **_YEAR),
        "peak, month": homes().plan(epsilon=0.1, every="month", **_YEAR),
        "peak, weekday": homes().plan(epsilon=0.1, every="weekday", **_YEAR),
        "peak, hour of a daily cap": homes(cap_every="day", every="day").plan(epsilon=1, every="hour", **_MONTH),
        "peak, count": homes(cap=None, value=None, measure="count").plan(epsilon=1, **_MONTH),
        "peak, gaussian": homes().plan(epsilon=1, mechanism="gaussian", **_MONTH),
        "peak, replaced": homes(adjacency="replace", per_user="max", timezone="Europe/London").plan(
            epsilon=1, **_MONTH
        ),
        "peak, series": series().plan(epsilon=1, **_MONTH),
        "peak, series by weekday": series(monotone=True, unit="trips").plan(epsilon=1, every="weekday", **_YEAR),
        "peak, categories": sales().plan(epsilon=1, categories=["tea", "coffee", "milk"]),
        "watch": homes().plan(threshold=12, budget=1, **_YEAR),
        "watch, unit, values": homes(unit="kWh").plan(threshold=12, budget=1, how_much=True, **_MONTH),
        "watch, one by one": homes().plan(threshold=12, budget=1, mechanism="exponential", **_MONTH),
        "watch, by hand": homes().plan(threshold=12, budget=1, noise=(1, 2), resample=False, clip=(3, 3), **_MONTH),
        "watch, series": series().plan(threshold=4000, budget=1, expect=Fraction(1, 10), **_MONTH),
        "watch, stream": plan_watch(family, WatchRequest(threshold=Fraction(1, 2), budget=1), questions=365),
    }
