"""The demonstration: a simulated city, two questions with the defaults, their answers beside the truth, a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpselect import files
from dpselect.dataset import Dataset, Peak, Watch, rows
from dpselect.dataset.budget import open_for_curator
from dpselect.dataset.file import FILE, file_text
from dpselect.demo.city import FIRST_DAY, simulate_city
from dpselect.errors import InvalidParameter, LedgerError, SourceError
from dpselect.mechanisms.mechanism import Noise
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.report.guarantee import Guarantee
from dpselect.report.page import write_page
from dpselect.report.plots import svg, year_chart
from dpselect.report.record import Finding, Report, Spending
from dpselect.rounding import upward
from dpselect.tables import BoundedQuery

#: What is public about the city, and the two questions.
CAP, UNIT, LINE, DAYS = 20, "kWh", 14, 365
PEAK_EPSILON, WATCH_BUDGET = 0.5, 1.0
#: What may be spent on the city afterwards, through the data-set file.
NEXT_TOTAL = 4

_READINGS = files.Kind("readings", (".csv",), (b'"meter","day","kwh"\n',))

#: Told what is being done and which share of the whole is behind.
Step = Callable[[str, float], None]


@dataclass(frozen=True, kw_only=True)
class PeakFound:
    """The private answer to *which day*, and the truth beside it (the city is simulated)."""

    day: str
    true_day: str
    mean_kwh: float
    true_mean_kwh: float
    rank: int
    epsilon: float
    mechanism: str


@dataclass(frozen=True, kw_only=True)
class DaysFound:
    """The private answer to *on which days*, and the truth beside it (the city is simulated)."""

    days: tuple[str, ...]
    true_days: tuple[str, ...]
    asked: int
    spending: Spending

    @property
    def right(self) -> int:
        """How many of the days found are above the line in truth."""
        return len(set(self.days) & set(self.true_days))


@dataclass(frozen=True, kw_only=True)
class Demonstration:
    """Everything the demonstration found, and where it put the files."""

    rows: int
    meters: int
    days: int
    peak: PeakFound
    watch: DaysFound
    page: Path
    readings: Path
    homes: Path
    noise: Noise


def run_demo(
    *,
    out: Path,
    meters: int = 2000,
    entropy: Entropy = SYSTEM_ENTROPY,
    step: Step = lambda _doing, _share: None,
) -> Demonstration:
    """Simulates the city, writes its readings and its data-set file to ``out``, asks both questions, writes a page."""
    files.check_folder(out, what="demonstration")
    out.mkdir(parents=True, exist_ok=True)
    page, readings, homes = out / "report.html", out / "readings.csv", out / "homes.toml"
    for place, kind in ((page, files.PAGE), (readings, _READINGS), (homes, FILE)):
        files.check(place, kind)
    step("Simulating the city", 0.0)
    city = simulate_city(meters=meters, days=DAYS)
    step("Writing its readings", 0.2)
    _write_readings(city, readings)
    last = FIRST_DAY + timedelta(days=DAYS - 1)
    facts = {
        "source": readings,
        "user": "meter",
        "time": "day",
        "value": "kwh",
        "cap": CAP,
        "population": meters,
        "unit": UNIT,
        "start": FIRST_DAY.isoformat(),
        "end": last.isoformat(),
    }
    files.write(homes, file_text(homes, facts), FILE)
    dataset = Dataset.open(homes, entropy=None if entropy is SYSTEM_ENTROPY else entropy)
    # Asked in a small city too, where answers are poor: the truth stands beside them.
    step("Which day was the peak?", 0.4)
    peak = dataset.peak(epsilon=PEAK_EPSILON, anyway=True)
    step("On which days was the line crossed?", 0.6)
    watch = dataset.watch(threshold=LINE, budget=WATCH_BUDGET, anyway=True)
    _keep_ledger(homes, facts)
    step("Writing the report", 0.9)
    truth = rows.read(dataset.scope(dataset.candidates()))
    found, marked = _peak_found(peak, truth), _days_found(watch, truth)
    written = write_page(_report(peak, watch, found, marked, truth), page)
    step("Done", 1.0)
    return Demonstration(
        rows=city.num_rows,
        meters=meters,
        days=DAYS,
        peak=found,
        watch=marked,
        page=written,
        readings=readings.resolve(),
        homes=homes.resolve(),
        noise=peak.noise,
    )


def _keep_ledger(homes: Path, facts: dict[str, Any]) -> None:
    """A ledger for whatever is asked next through the data-set file; the demonstration's own answers are apart.

    One that is there is kept, with what was charged to it; without SQLAlchemy there is none.
    """
    place = homes.with_suffix(".ledger")
    try:
        with open_for_curator(place, name=homes.stem, total=NEXT_TOTAL, facts=facts, make=True) as book:
            kept = {"ledger": place, "anchor": str(book.identity), "total": NEXT_TOTAL}
    except (SourceError, LedgerError, InvalidParameter):
        return
    files.write(homes, file_text(homes, facts | kept), FILE)


def _write_readings(city: Any, place: Path) -> None:
    from pyarrow import csv

    with files.fresh_file(place, what="readings") as fresh:
        csv.write_csv(city, fresh)
        fresh.replace(place)


def _kilowatt_hours(truth: BoundedQuery) -> Any:
    """The capped means without noise: private anywhere but in a simulation."""
    return truth.values * float(truth.natural_unit)


def _peak_found(answer: Peak, truth: BoundedQuery) -> PeakFound:
    means = _kilowatt_hours(truth)
    best = int(np.argmax(means))
    return PeakFound(
        day=answer.label,
        true_day=truth.labels[best],
        mean_kwh=float(means[answer.index]),
        true_mean_kwh=float(means[best]),
        rank=1 + int((means > means[answer.index]).sum()),
        epsilon=answer.epsilon,
        mechanism=answer.plan.mechanism,
    )


def _days_found(answer: Watch, truth: BoundedQuery) -> DaysFound:
    above = np.flatnonzero(_kilowatt_hours(truth) >= LINE)
    spending = answer.as_report().findings[0].spending
    return DaysFound(
        days=tuple(answer.labels),
        true_days=tuple(truth.labels[int(place)] for place in above),
        asked=answer.answered,
        spending=spending or Spending(spent=(), above=(), budget=WATCH_BUDGET),
    )


def _report(peak: Peak, watch: Watch, day: PeakFound, days: DaysFound, truth: BoundedQuery) -> Report:
    """The two answers as their own reports tell them, with the truth beside each and the year drawn."""
    first, second = peak.as_report(), watch.as_report()
    marked = [truth.labels.index(label) for label in days.days]
    year = year_chart(_kilowatt_hours(truth).tolist(), truth.labels, line=LINE, marked=marked, unit=UNIT)
    return Report(
        title="Electricity in a simulated city",
        findings=(
            _beside(
                first.findings[0],
                ("In truth", f"{day.true_day} ({day.true_mean_kwh:.2f} {UNIT}; shown because it is simulated)"),
                ("The answer's day", f"{day.mean_kwh:.2f} {UNIT}, number {day.rank} of {len(truth)}"),
            ),
            replace(
                _beside(
                    second.findings[0],
                    (
                        "In truth",
                        f"{len(days.true_days)} days, {days.right} of them named: {', '.join(days.true_days)}",
                    ),
                ),
                figure=svg(year),
                caption="The simulated year, the line, and the days that were answered above it.",
            ),
        ),
        guarantee=Guarantee(epsilon=upward(Fraction(peak.epsilon) + Fraction(WATCH_BUDGET)), noise=peak.noise),
        parameters=first.parameters,
        notes=(
            "Both answers come from the same homes, so their costs add up to the ε above.",
            *(note for note in first.notes if note.startswith("The answer is")),
        ),
        simulated=True,
    )


def _beside(finding: Finding, *more: tuple[str, str]) -> Finding:
    return replace(finding, details=(*finding.details, *more))
