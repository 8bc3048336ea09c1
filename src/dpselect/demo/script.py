"""The demonstration: a simulated city, two questions, their answers beside the truth, a report."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np

from dpselect import files
from dpselect.checks import FloatArray
from dpselect.composition.sparse_vector import SparseVector
from dpselect.demo.city import FIRST_DAY, simulate_city
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax
from dpselect.mechanisms.outcomes import Noise, Verdict
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.privacy.profiles import selection_epsilon
from dpselect.report.guarantee import Guarantee
from dpselect.report.page import write_page
from dpselect.report.record import Finding, Report, Spending
from dpselect.report.rounding import at_most
from dpselect.tables import BoundedQuery, Calendar, Question, bounded_query

CAP, LINE, CLIP = 20, 14, 2
PEAK_EPSILON, WATCH_BUDGET, EXPECTED_SPELLS, DELTA = 0.5, 1.0, 4, 1e-5

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
    sigma_kwh: float


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
class Bound:
    """What one release costs, by three roads: pure, the profile at δ, and releasing every value instead."""

    what: str
    pure: float
    at_delta: float
    releasing_all: float


@dataclass(frozen=True, kw_only=True)
class Demonstration:
    """Everything the demonstration found, and where it put the files."""

    rows: int
    meters: int
    days: int
    peak: PeakFound
    watch: DaysFound
    bounds: tuple[Bound, ...]
    page: Path
    plots: tuple[Path, ...]
    noise: Noise


def run_demo(
    *,
    out: Path,
    meters: int = 2000,
    days: int = 365,
    entropy: Entropy = SYSTEM_ENTROPY,
    step: Step = lambda _doing, _share: None,
) -> Demonstration:
    """Simulates the city, asks both questions through DuckDB, writes the report and the plot to ``out``."""
    files.check_folder(out, what="demonstration")
    out.mkdir(parents=True, exist_ok=True)
    page, plot, spend_plot = out / "report.html", out / "epsilon-against-candidates.svg", out / "spending.svg"
    files.check(page, files.PAGE)
    for drawing in (plot, spend_plot):
        files.check(drawing, files.DRAWING)
    step("Simulating the city", 0.0)
    city = simulate_city(meters=meters, days=days)
    last = FIRST_DAY + timedelta(days=days - 1)
    question = Question(user="meter", time="day", value="kwh", cap=CAP, population=meters)
    step("Adding up the readings in DuckDB", 0.2)
    answer = bounded_query(city, question, Calendar(FIRST_DAY, last))
    step("Which day was the peak?", 0.5)
    picker = GaussianNoisyMax.calibrated(answer.family, candidates=days, epsilon=PEAK_EPSILON)
    peak = ask_peak(answer, picker, entropy=entropy)
    step("On which days was the line crossed?", 0.6)
    watch, vector = ask_days(answer, entropy=entropy)
    step("Writing the report", 0.7)
    from dpselect.report.plots import save_epsilon_plot, save_spend_plot

    spend_plot = save_spend_plot(spend_plot, svt=vector)
    plot = save_epsilon_plot(plot, family=answer.family, delta=DELTA)
    step("Writing the report", 0.9)
    noise: Noise = "private" if entropy.private else "reproducible"
    page = write_page(_report(peak, watch, meters=meters, days=days, plot=plot, noise=noise), page)
    step("Done", 1.0)
    return Demonstration(
        rows=city.num_rows,
        meters=meters,
        days=days,
        peak=peak,
        watch=watch,
        bounds=bounds(picker),
        page=page,
        plots=(plot.resolve(), spend_plot.resolve()),
        noise=noise,
    )


def ask_peak(answer: BoundedQuery, picker: GaussianNoisyMax, *, entropy: Entropy) -> PeakFound:
    """Which day has the largest mean, with noise; and the truth."""
    chosen = picker.release(answer.values, entropy=entropy, outside="clip")
    truth = _kilowatt_hours(answer)
    best = int(np.argmax(truth))
    return PeakFound(
        day=answer.labels[chosen.index],
        true_day=answer.labels[best],
        mean_kwh=float(truth[chosen.index]),
        true_mean_kwh=float(truth[best]),
        rank=1 + int((truth > truth[chosen.index]).sum()),
        epsilon=chosen.loss.epsilon,
        sigma_kwh=picker.sigma * CAP,
    )


def ask_days(answer: BoundedQuery, *, entropy: Entropy) -> tuple[DaysFound, SparseVector]:
    """On which days the mean is at or above the line, asked one after the other within the budget; and the truth."""
    line, width = answer.query_at(LINE), CLIP / CAP
    near = answer.family.near(line, below=width, above=width)
    # Noise with which so many spells fit the budget; further days of one spell cost little more.
    noise = GaussianAboveThreshold.calibrated(
        near,
        threshold=line,
        below=-(-len(answer) // EXPECTED_SPELLS),
        above=1,
        epsilon=WATCH_BUDGET / (EXPECTED_SPELLS + 1),
        ratio=1.0,
    )
    watcher = GaussianAboveThreshold(
        answer.family, threshold=line, sigma_threshold=noise.sigma_threshold, sigma_query=noise.sigma_query
    )
    vector = SparseVector(watcher, budget=WATCH_BUDGET, clip=width, outside="clip", entropy=entropy)
    spent: list[float] = []
    above: list[int] = []
    for place, value in enumerate(answer.values.tolist()):
        if not vector.fits:
            break
        if vector.ask(value) is Verdict.ABOVE:
            above.append(place)
        spent.append(vector.spent)
    truth = np.flatnonzero(_kilowatt_hours(answer) >= LINE)
    found = DaysFound(
        days=tuple(answer.labels[place] for place in above),
        true_days=tuple(answer.labels[int(place)] for place in truth),
        asked=len(spent),
        spending=Spending(
            spent=tuple(spent),
            above=tuple(above),
            budget=WATCH_BUDGET,
            first=answer.labels[0],
            last=answer.labels[max(0, len(spent) - 1)],
        ),
    )
    return found, vector


def bounds(picker: GaussianNoisyMax) -> tuple[Bound, ...]:
    """A small table: what naming the largest of d costs, against releasing all d values with the same noise."""
    shift = picker.family.sensitivity / picker.sigma
    return tuple(
        Bound(
            what=f"largest of {d:,}",
            pure=float(picker.epsilon(candidates=d)),
            at_delta=float(picker.approximate_epsilon(delta=DELTA, candidates=d)),
            releasing_all=float(selection_epsilon(DELTA, shift=shift * d**0.5)),
        )
        for d in (24, 90, 365, 8760)
    )


def _kilowatt_hours(answer: BoundedQuery) -> FloatArray:
    """The capped means without noise: private anywhere but in a simulation."""
    return answer.values * float(answer.natural_unit)


def _report(peak: PeakFound, watch: DaysFound, *, meters: int, days: int, plot: Path, noise: Noise) -> Report:
    spent = watch.spending.spent[-1] if watch.spending.spent else 0.0
    return Report(
        title="Electricity in a simulated city",
        findings=(
            Finding(
                question="On which day of the year was mean consumption per home highest?",
                answer=peak.day,
                details=(
                    ("In truth", f"{peak.true_day} ({peak.true_mean_kwh:.2f} kWh; shown because it is simulated)"),
                    ("The answer's day", f"{peak.mean_kwh:.2f} kWh, number {peak.rank} of {days}"),
                    ("Cost", f"ε = {at_most(peak.epsilon)}"),
                ),
                figure=plot.read_text(encoding="utf-8"),
                caption=(
                    "What naming the largest of d costs with this noise: pure, up to δ, and by releasing all d values."
                ),
            ),
            Finding(
                question=f"On which days was mean consumption at or above {LINE} kWh?",
                answer=f"{len(watch.days)} of {watch.asked} days",
                details=(
                    ("Above", ", ".join(watch.days) or "none"),
                    ("In truth", ", ".join(watch.true_days) or "none"),
                    *((("Not asked", "the rest of the year: the budget ended"),) if watch.asked < days else ()),
                    ("Cost", f"ε = {at_most(spent)} of {at_most(watch.spending.budget)}"),
                ),
                spending=watch.spending,
            ),
        ),
        guarantee=Guarantee(epsilon=math.nextafter(peak.epsilon + WATCH_BUDGET, math.inf), noise=noise),
        parameters=(
            ("Homes", f"{meters:,}"),
            ("Days", f"{days:,}"),
            ("Cap per home and day", f"{CAP} kWh"),
            ("Noise of the peak", f"Gaussian, σ = {at_most(peak.sigma_kwh)} kWh"),
            ("Days cut to", f"{CLIP} kWh around the line"),
        ),
        notes=("Both answers come from the same homes, so their costs add up to the ε above.",),
        simulated=True,
    )
