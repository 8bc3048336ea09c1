"""Every fast value against the enclosure: never below its lower end, never more than 1e-10 above its upper end.

One by one and batched, over the whole domain. The share without the mark runs in ``make test``, all of it in
``make test-full``; `test_the_same_check_fails_…` are the controls.
"""

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from dpselect.numerics import alone, rule, settle, strip
from dpselect.numerics.enclosure import Enclosure, enclose_log_ratio
from dpselect.numerics.integral import log_ratio, single_cell, upper_end
from dpselect.privacy.above_threshold import certify_transcript, transcript_loss
from dpselect.privacy.noisy_max import certify_noisy_max, noisy_max_loss

#: Slow parts of each kind, and how many cells are in each.
PARTS = 14
CELLS = 500


class NoisyMax:
    """Δ from 1e-12 of the range to all of it, σ from 1e-3 of it to 1e3, up to 1e12 candidates."""

    batch = ("sensitivity", "sigma", "candidates")

    @staticmethod
    def draw(rng):
        return {
            "sensitivity": 10 ** rng.uniform(-12, 0),
            "sigma": 10 ** rng.uniform(-3, rng.choice([0, 3])),
            "candidates": np.floor(10 ** rng.uniform(0.31, 12)) + 1,
            "monotone": bool(rng.integers(2)),
        }

    @staticmethod
    def fast(**case):
        return noisy_max_loss(width=1.0, **case)

    @staticmethod
    def proven(**case):
        return certify_noisy_max(lower=0.0, upper=1.0, **case)


class Transcript:
    """Thresholds inside and far outside (offsets to 1e8), σ from 1e-3 to 1e3, up to 1e12 ⊥ and 1e6 ⊤."""

    batch = ("lower", "upper", "sensitivity", "threshold", "sigma_threshold", "sigma_query", "below", "above")

    @staticmethod
    def draw(rng):
        below = np.floor(10 ** rng.uniform(0, rng.choice([3, 12]))) - 1
        lower = float(rng.choice([0.0, 0.0, 1.0, -5.0, 1 / 3]))
        far = rng.choice([-1, 1]) * 10 ** rng.uniform(0, 5)
        return {
            "lower": lower,
            "upper": lower + float(rng.choice([1.0, 0.5])),
            "sensitivity": 10 ** rng.uniform(-12, 0),
            "threshold": lower + (rng.uniform(-0.2, 1.2) if rng.random() < 0.8 else far),
            "sigma_threshold": 10 ** rng.uniform(-3, rng.choice([0, 3])),
            "sigma_query": 10 ** rng.uniform(-3, rng.choice([0, 3])),
            "below": below,
            "above": float(rng.choice([0, 1, 1, np.floor(10 ** rng.uniform(0, 6))])) if below else 1.0,
            "monotone": bool(rng.integers(2)),
        }

    fast = staticmethod(transcript_loss)
    proven = staticmethod(certify_transcript)


class ScaledNoisyMax(NoisyMax):
    """Drawn in the bound's own scale: c/σ, the peak's distance, the loss; Δ up to c, counts near powers of two."""

    @staticmethod
    def draw(rng):
        gap, power = 10 ** rng.uniform(-2, 2.7), rng.integers(1, 45)
        return {
            "sensitivity": min(1.0, 10 ** rng.uniform(-11, 1.5) / max(gap, 1.0)),
            "sigma": 1.0 / gap,
            "candidates": 2.0**power + rng.integers(-1, 2) + (power == 1),
            "monotone": bool(rng.integers(2)),
        }


class ScaledTranscript(Transcript):
    """Drawn in the bound's own scale: slopes and offsets in σ_Z, ranges far from 0, thresholds at their ends; as many
    ⊤ as ⊥, or nearly; Δ by the size of the loss."""

    @staticmethod
    def draw(rng):
        width, noise = 10 ** rng.uniform(-3, 3), 10 ** rng.uniform(-2, 2)
        lower = float(rng.choice([0.0, -width, 1e6, -0.1 * width, rng.integers(-50, 50) / 64]))
        upper = lower + width
        place = rng.choice(["end", "inside", "outside"])
        inside = {"end": float(rng.integers(2)), "inside": rng.random(), "outside": rng.normal() * 8}[place]
        below = float(rng.choice([0.0, 1.0, 2.0 ** rng.integers(1, 40), 10.0 ** rng.integers(1, 12)]))
        above = float(rng.choice([0.0, 1.0, below, np.floor(below * rng.random()) + 1, 10.0 ** rng.integers(1, 6)]))
        return {
            "lower": lower,
            "upper": upper,
            "sensitivity": (upper - lower) * min(1.0, 10 ** rng.uniform(-11, 0.2)),
            "threshold": lower + (upper - lower) * inside,
            "sigma_threshold": width * noise * 10 ** rng.uniform(-2, 1.2),
            "sigma_query": width * noise,
            "below": below,
            "above": above if below or above else 1.0,
            "monotone": bool(rng.integers(2)),
        }


def agrees(upper, proven):
    return proven.lower <= upper <= proven.upper * (1 + 1e-10) + 1e-307


def check(kind, cases):
    """Each case alone, then all of them batched."""
    truths = [kind.proven(**case) for case in cases]
    for case, truth in zip(cases, truths, strict=True):
        assert agrees(float(kind.fast(**case).upper), truth), case
    for monotone in {case["monotone"] for case in cases}:
        chosen = [k for k, case in enumerate(cases) if case["monotone"] == monotone]
        # Fewer than a dozen would be taken one by one.
        chosen = chosen * (1 + 12 // len(chosen))
        arrays = {name: np.array([cases[k][name] for k in chosen]) for name in kind.batch}
        uppers = kind.fast(**arrays, monotone=monotone).upper
        for k, upper in zip(chosen, uppers, strict=True):
            assert agrees(float(upper), truths[k]), cases[k]


def mixture(rng):
    """Two to four kinds of questions under one threshold: counts to 1e12, slopes to 1e3, offsets to 1e8."""
    kinds = int(rng.integers(2, 5))
    sizes = 10 ** rng.uniform(-2, rng.choice([1, 3]), kinds)
    spread = rng.choice([3.0, 30.0, 30.0, 10 ** rng.uniform(2, 8)])
    counts = np.floor(10 ** rng.uniform(0, rng.choice([2, 4, 12]), kinds))
    if rng.random() < 0.3:
        counts[0] = 0.0
    return (
        counts.tolist(),
        (sizes * rng.choice([-1, 1], kinds)).tolist(),
        (rng.uniform(-1, 0.3, kinds) * spread).tolist(),
        (10 ** rng.uniform(-9, rng.choice([-2, 0.5]), kinds) * (rng.random(kinds) < 0.8)).tolist(),
    )


def hard_mixture(rng):
    """A hill made by one kind of factor, and others that trouble the arithmetic: steep and far above it, where φ/Φ
    underflows; shifted so that one translation clears both, but for rounding; deep in the lower tail."""
    count, slope = np.floor(10 ** rng.uniform(0.5, 6)), 10 ** rng.uniform(-1, 0.5)
    offset, shift = rng.uniform(-9, 2), 10 ** rng.uniform(-9, rng.choice([-2, 0.3]))
    # The hill lies where count·slope·φ(y) is about x.
    x = max(0.0, (np.sqrt(2 * np.log(1 + count * slope / 4)) - offset) / slope)
    cell = [(count, slope, offset, shift)]
    for trouble in rng.choice(["far", "cleared", "deep", "none"], int(rng.integers(1, 4))):
        along = 10 ** rng.uniform(-1, 2) * rng.choice([-1, 1])
        if trouble == "far":
            cell.append((10.0 ** rng.integers(0, 10), along, rng.uniform(20, 60) - along * x, rng.random() / 30))
        elif trouble == "cleared":
            scale = rng.uniform(0.3, 3)
            cell.append((np.floor(10 ** rng.uniform(0, 12)), slope * scale, rng.uniform(3, 12) - slope * scale * x,
                         shift * scale))  # fmt: skip
        elif trouble == "deep":
            cell.append((np.floor(10 ** rng.uniform(0, 6)), along / 30, -(10 ** rng.uniform(1, 5)), rng.random()))
    return tuple(map(list, zip(*((float(part) for part in row) for row in cell), strict=True)))


def mixture_truth(cell):
    """The enclosure, which gives up where every factor is 1 to 340 digits: the loss is then no double."""
    counts, slopes, offsets, _ = cell
    sure = [offset / np.hypot(1, slope) for m, slope, offset in zip(counts, slopes, offsets, strict=True) if m]
    return Enclosure(0.0, 1e-320) if min(sure, default=50) > 40.1 else enclose_log_ratio(*cell)


def check_mixtures(cells):
    truths = [mixture_truth(cell) for cell in cells]
    for cell, truth in zip(cells, truths, strict=True):
        assert agrees(upper_end(*single_cell(*cell)), truth), cell
    for kinds in {len(cell[0]) for cell in cells}:
        chosen = [k for k, cell in enumerate(cells) if len(cell[0]) == kinds]
        chosen = chosen * (1 + 12 // len(chosen))
        uppers = log_ratio(*(np.array([cells[k][part] for k in chosen]) for part in range(4))).upper
        for k, upper in zip(chosen, uppers, strict=True):
            assert agrees(float(upper), truths[k]), cells[k]


@cache
def round_settings():
    """What people type: one or two digits everywhere."""
    picks = itertools.product(
        (0.001, 0.01, 0.1, 0.5, 1.0),  # Δ
        (0.1, 0.5, 0.575, 0.9),  # ρ
        (0.01, 0.05, 0.1, 0.2, 0.5),  # σ_X
        (0.02, 0.05, 0.1, 0.2, 1.0),  # σ_Z
        ((1, 0), (100, 0), (2, 1), (99, 1), (1000, 1)),
        (False, True),
    )
    names = ("sensitivity", "threshold", "sigma_threshold", "sigma_query")
    transcripts = [
        dict(zip(names, values[:4], strict=True))
        | {"lower": 0.0, "upper": 1.0, "below": values[4][0], "above": values[4][1], "monotone": values[5]}
        for values in picks
    ]
    selections = [
        {"sensitivity": delta, "sigma": sigma, "candidates": d, "monotone": monotone}
        for delta, sigma, d, monotone in itertools.product(
            (0.001, 0.01, 0.1, 0.8, 1.0),
            (0.01, 0.02, 0.05, 0.07, 0.1, 0.2, 0.5, 1.0, 2.0),
            (2, 10, 100, 365, 1000, 100_000),
            (False, True),
        )
    ]
    return transcripts, selections


@pytest.mark.parametrize(
    ("kind", "size"), [(NoisyMax, 150), (Transcript, 150), (ScaledNoisyMax, 60), (ScaledTranscript, 60)]
)
def test_never_below_the_truth_quick_share(kind, size):
    rng = np.random.default_rng(202611)
    check(kind, [kind.draw(rng) for _ in range(size)])


@pytest.mark.parametrize(("draw", "size"), [(mixture, 100), (hard_mixture, 40)])
def test_mixtures_never_below_the_truth_quick_share(draw, size):
    rng = np.random.default_rng(202612)
    check_mixtures([draw(rng) for _ in range(size)])


def test_round_settings_never_below_the_truth_quick_share():
    transcripts, selections = round_settings()
    check(Transcript, transcripts[7::61])
    check(NoisyMax, selections[3::11])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", [NoisyMax, Transcript, ScaledNoisyMax, ScaledTranscript])
def test_never_below_the_truth(kind, part):
    rng = np.random.default_rng([2026, part])
    check(kind, [kind.draw(rng) for _ in range(CELLS)])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("draw", [mixture, hard_mixture])
def test_mixtures_never_below_the_truth(draw, part):
    rng = np.random.default_rng([2027, part])
    check_mixtures([draw(rng) for _ in range(CELLS)])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_round_settings_never_below_the_truth(part):
    transcripts, selections = round_settings()
    assert len(transcripts) + len(selections) >= 5_000
    check(Transcript, transcripts[part::10])
    check(NoisyMax, selections[part::10])


FELL_BELOW_BEFORE = [
    {
        "lower": 0.0,
        "upper": 1.0,
        "sensitivity": 1.0,
        "threshold": 0.575,
        "sigma_threshold": 0.1,
        "sigma_query": 0.05,
        "below": 100,
        "above": 0,
        "monotone": False,
    },
    {
        "lower": -5.0,
        "upper": -4.5,
        "sensitivity": 0.11221346600571881,
        "threshold": -33.12016879131552,
        "sigma_threshold": 0.1439115198994559,
        "sigma_query": 0.005090394864810846,
        "below": 9518970,
        "above": 1,
        "monotone": True,
    },
    {
        "lower": 0.0,
        "upper": 1.0,
        "sensitivity": 0.0001434093305663309,
        "threshold": -4.691826205879731,
        "sigma_threshold": 2.5889656347607295e-05,
        "sigma_query": 1.246288735890232,
        "below": 7877779,
        "above": 38,
        "monotone": False,
    },
    {
        "lower": 0.0,
        "upper": 1.0,
        "sensitivity": 1.2937268149179006e-08,
        "threshold": 593.3341724367783,
        "sigma_threshold": 0.0113150952072689,
        "sigma_query": 0.0652697354991136,
        "below": 5905586,
        "above": 59,
        "monotone": False,
    },
]


def test_inputs_that_once_fell_below_or_were_loose():
    check(Transcript, FELL_BELOW_BEFORE)
    check(NoisyMax, [{"sensitivity": 0.8, "sigma": 0.07, "candidates": 100_000, "monotone": False}])


def test_a_run_of_two_kinds_of_questions_that_once_fell_below():
    spread, change = 0.5475841696608645, 0.0598853783803089
    slopes, offsets, shifts = [], [], []
    for upper, threshold, noise in (
        (0.9008265823817434, 0.6347955704304058, 0.08719483001604716),
        (0.917544917689574, 0.978026309827545, 0.6044191596274139),
    ):
        slopes.append(spread / noise)
        offsets.append((threshold - upper) / noise)
        shifts.append(change / noise)
    found = upper_end(*single_cell([215.0, 93.0], slopes, offsets, shifts))
    exact = ([Fraction(number) for number in column] for column in (slopes, offsets, shifts))
    assert agrees(found, enclose_log_ratio([215, 93], *exact))


def violations(kind, cases, *, batched):
    """How many fall below, one by one or all together."""
    if batched:
        arrays = {name: np.array([case[name] for case in cases]) for name in kind.batch}
        uppers = kind.fast(**arrays, monotone=False).upper.tolist()
    else:
        uppers = [float(kind.fast(**case).upper) for case in cases]
    return sum(upper < kind.proven(**case).lower for upper, case in zip(uppers, cases, strict=True))


def ordinary(rng):
    return {
        "sensitivity": 10 ** rng.uniform(-3, -1),
        "sigma": 10 ** rng.uniform(-1.3, 0.3),
        "candidates": np.floor(10 ** rng.uniform(0.5, 5)) + 1,
        "monotone": False,
    }


@pytest.mark.parametrize("batched", [False, True])
def test_the_same_check_fails_with_the_bound_divided_by_a_million(monkeypatch, batched):
    """All of the error, then: the theorem's part, the tails and the rounding."""
    rng = np.random.default_rng(5)
    cases = [ordinary(rng) for _ in range(60)]
    assert violations(NoisyMax, cases, batched=batched) == 0
    name = "ratio_from" if batched else "ratio_of_one"
    right = getattr(settle, name)

    def smaller(found):
        value, error = right(found)
        return value, error * 1e-6

    monkeypatch.setattr(settle, name, smaller)
    assert violations(NoisyMax, cases, batched=batched) > 0


@pytest.mark.parametrize("batched", [False, True])
def test_the_same_check_fails_with_the_step_doubled(monkeypatch, batched):
    """The bound is kept as if the step were the planned one; the nodes are twice as far apart."""
    rng = np.random.default_rng(6)
    cases = [ordinary(rng) for _ in range(60)]
    module, name = (settle, "plan") if batched else (alone, "plan_alone")
    right = getattr(module, name)

    def coarser(factors, spot, move):
        found = right(factors, spot, move)
        # A strip twice as wide has the same bound with twice the step: the lie that must show.
        holder = found.strip if batched else found
        wider = holder._replace(half_width=2.0 * holder.half_width)
        found = found._replace(strip=wider) if batched else wider
        first, last = np.floor(found.first / 2) - 1.0, np.ceil(found.last / 2) + 1.0
        return found._replace(step=2.0 * found.step, first=first, last=last)

    monkeypatch.setattr(module, name, coarser)
    assert violations(NoisyMax, cases, batched=batched) > 0


@pytest.mark.parametrize("effort", [6.0, 12.0, 20.0])
def test_the_theorem_holds_for_coarse_sums_too(monkeypatch, effort):
    """With a step chosen for an error of e^-6, e^-12 or e^-20 the true error stays within what is claimed, and is often
    a visible part of it: the bound is about the quadrature, not about rounding."""
    monkeypatch.setattr(alone, "EFFORT", effort)
    monkeypatch.setattr(rule, "EFFORT", effort)
    monkeypatch.setattr(settle, "TOLERANCE", 1.0)
    rng = np.random.default_rng(9)
    shares = []
    for _ in range(150):
        case = ordinary(rng)
        loss, truth = noisy_max_loss(width=1.0, **case), NoisyMax.proven(**case)
        miss = max(truth.lower - float(loss.value), float(loss.value) - truth.upper, 0.0)
        assert miss <= float(loss.error), case
        shares.append(miss / float(loss.error))
    if effort < 15:
        assert max(shares) > 1e-3
    assert strip.EFFORT == 30.0
