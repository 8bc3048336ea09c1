"""Verdicts against one noisy threshold: exact, lawful, one at a time or many at once."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, expon, gumbel_r, laplace, norm

from dpselect.errors import InvalidData, InvalidParameter, StateRefused
from dpselect.noise.draw import LazyDraw
from dpselect.noise.entropy import SeededEntropy
from dpselect.noise.quantiles import EXPONENTIAL, GUMBEL, LAPLACE, NORMAL, Law
from dpselect.noise.scan import NoisyThreshold

TRUE_LAWS = {NORMAL: norm, LAPLACE: laplace, EXPONENTIAL: expon, GUMBEL: gumbel_r}
TINY = 5e-324
BIG = float(2**60)


def known_draw(law: Law, *, bits: int = 80, seed: int = 1) -> LazyDraw:
    draw = LazyDraw(law, entropy=SeededEntropy(seed))
    draw.refine(bits=bits)
    return draw


def worst_p_value(law: Law, *, scale: float, questions: int) -> float:
    """The least two-sided p-value over questions near and far, where the threshold's own draw is known."""
    draw = known_draw(law)
    level = 0.5 + 2.0 * draw.bounds()[0]
    run = NoisyThreshold(0.5, scale_threshold=2.0, scale_query=scale, law=law, entropy=SeededEntropy(2), draw=draw)
    worst = 1.0
    for at in (-2.0, -1.0, -0.3, 0.0, 0.4, 1.0, 2.0):
        value = level - at  # ⊤ exactly where the question's own noise is at least `at`
        above = int(run.ask_many(np.full(questions, value), until="all").sum())
        p = float(TRUE_LAWS[law].sf(at))
        below_or_equal, at_least = binom.cdf(above, questions, p), binom.sf(above - 1, questions, p)
        worst = min(worst, 2 * float(min(below_or_equal, at_least)))
    return worst


@pytest.mark.parametrize("law", TRUE_LAWS, ids=lambda law: law.name)
def test_verdicts_follow_the_law_and_two_percent_less_noise_fails(law: Law) -> None:
    assert worst_p_value(law, scale=1.0, questions=1_000_000) > 1e-6
    assert worst_p_value(law, scale=0.98, questions=1_000_000) < 1e-6


@pytest.mark.parametrize("law", TRUE_LAWS, ids=lambda law: law.name)
def test_the_noise_of_the_threshold_follows_the_law(law: Law) -> None:
    runs, p_low, p_high = 4000, TRUE_LAWS[law].cdf(0.3), TRUE_LAWS[law].cdf(0.0)
    entropy = SeededEntropy(6)

    def reached(value: float) -> int:
        run = [
            NoisyThreshold(0, scale_threshold=1, scale_query=1e-9, law=law, entropy=entropy).ask(value)
            for _ in range(runs)
        ]
        return sum(run)

    for value, p in ((0.3, p_low), (1e-300, p_high)):
        above = reached(value)
        assert 2 * min(binom.cdf(above, runs, p), binom.sf(above - 1, runs, p)) > 1e-6


CLOSE = {
    "at the threshold": (0.5, [0.5, np.nextafter(0.5, 1), np.nextafter(0.5, 0), 0.5]),
    "subnormal": (TINY, [0.0, TINY, 2 * TINY, -TINY]),
    "large": (BIG, [BIG, BIG + 256, BIG - 128, BIG]),
    "far": (1e308, [1e308, -1e308, np.nextafter(1e308, 0), 0.0]),
    "integers": (2**60 + 1, [2**60, 2**60 + 1, 2**60 + 2, -(2**63)]),
    "thirds": (Fraction(1, 3), [Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**50), 1, 0]),
    "floats at a third": (Fraction(1, 3), [1 / 3, np.nextafter(1 / 3, 1), 0.0, 1.0]),
}


def assert_judge_agrees(
    verdict: bool, value: Any, question: LazyDraw, run: dict[str, Any], judge_score: Any, extremes: Any
) -> None:
    """The verdict holds at 2,000 bits, even if the bits not drawn are those that speak most against it."""
    lowest, highest = extremes
    noisy = judge_score(
        Fraction(value),
        scale=Fraction(run["scale_query"]),
        law=run["law"],
        prefix=question.prefix,
        length=question.length,
        more=lowest if verdict else highest,
    )
    level = judge_score(
        Fraction(run["threshold"]),
        scale=Fraction(run["scale_threshold"]),
        law=run["law"],
        prefix=run["draw"].prefix,
        length=run["draw"].length,
        more=highest if verdict else lowest,
    )
    with flint.ctx.workprec(4200):
        assert level < noisy if verdict else noisy < level


def check_against_the_judge(
    settled: list[LazyDraw], values: Any, cells: list[int], run: dict[str, Any], tools: Any
) -> None:
    watched, judge_score, extremes = tools
    for single in (True, False):
        entropy = watched(9, cells=list(cells))
        drawn = LazyDraw(run["law"], entropy=SeededEntropy(run["seed"]))
        drawn.refine(bits=70)
        keywords = {k: run[k] for k in ("scale_threshold", "scale_query", "law")}
        threshold = NoisyThreshold(run["threshold"], entropy=entropy, draw=drawn, **keywords)
        for value, cell in zip(values, cells, strict=True):
            settled.clear()
            verdict = threshold.ask(value) if single else bool(threshold.ask_many([value], until="all")[0])
            known = settled[0] if settled else LazyDraw(run["law"], prefix=cell, length=16)
            assert_judge_agrees(verdict, value, known, run | {"draw": drawn}, judge_score, extremes)


@pytest.fixture
def settled_draws(monkeypatch: pytest.MonkeyPatch) -> list[LazyDraw]:
    """The draws of questions that needed more than 16 bits, as they are left by the comparison."""
    from dpselect.noise import scan

    draws: list[LazyDraw] = []
    compare = scan.compare

    def watching(first: Any, second: Any) -> int:
        draws.append(first.draw)
        return compare(first, second)

    monkeypatch.setattr(scan, "compare", watching)
    return draws


@pytest.mark.parametrize("law", [NORMAL, GUMBEL], ids=lambda law: law.name)
@pytest.mark.parametrize(
    "scales", [(1.0, 1.0), (1e-300, 1e300), (1e300, 1e-300), (1e308, 1e308), (TINY, TINY), (50.0, 90.0)], ids=str
)
@pytest.mark.parametrize("case", CLOSE.values(), ids=CLOSE)
def test_close_verdicts_are_decided_as_at_two_thousand_bits(
    case: Any, scales: Any, law: Law, settled_draws: list[LazyDraw], watched: Any, judge_score: Any, extremes: Any
) -> None:
    threshold, values = case
    run = {"threshold": threshold, "scale_threshold": scales[0], "scale_query": scales[1], "law": law, "seed": 5}
    own = LazyDraw(law, entropy=SeededEntropy(5))
    own.refine(bits=70)
    near = own.prefix >> 54  # the cell the threshold's own draw lies in
    for cells in ([near] * 4, [0, 65535, near, near], [near + 1, near - 1, near, 3], [65534] * 4):
        check_against_the_judge(settled_draws, values, cells, run, (watched, judge_score, extremes))


@pytest.mark.parametrize("law", TRUE_LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("offset", [0.0, 1e-16, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-5])
def test_a_threshold_beside_the_end_of_a_cell_is_decided_as_at_two_thousand_bits(
    offset: float, law: Law, settled_draws: list[LazyDraw], watched: Any, judge_score: Any, extremes: Any
) -> None:
    run = {"threshold": 0.5, "scale_threshold": 0.25, "scale_query": 1.0, "law": law, "seed": 8}
    own = LazyDraw(law, entropy=SeededEntropy(8))
    own.refine(bits=70)
    level = 0.5 + 0.25 * own.bounds()[0]
    for cell in (5, 20000, 32768, 65000, 65534):
        for end in (law.cells.lower[cell], law.cells.upper[cell]):
            values = [float(level - end + offset), float(level - end - offset)]
            check_against_the_judge(settled_draws, values, [cell] * 2, run, (watched, judge_score, extremes))


@settings(deadline=None, max_examples=40)
@given(
    value=st.floats(allow_nan=False, allow_infinity=False),
    threshold=st.floats(allow_nan=False, allow_infinity=False),
    scale_threshold=st.floats(min_value=TINY, allow_infinity=False),
    scale_query=st.floats(min_value=TINY, allow_infinity=False),
    cell=st.integers(0, 65535),
    seed=st.integers(0, 1000),
)
def test_any_verdict_is_decided_as_at_two_thousand_bits(
    value: float,
    threshold: float,
    scale_threshold: float,
    scale_query: float,
    cell: int,
    seed: int,
    watched: Any,
    judge_score: Any,
    extremes: Any,
) -> None:
    from dpselect.noise import scan

    draws: list[LazyDraw] = []
    compare = scan.compare
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "compare", lambda a, b: (draws.append(a.draw), compare(a, b))[1])
        run = {
            "threshold": threshold,
            "scale_threshold": scale_threshold,
            "scale_query": scale_query,
            "law": NORMAL,
            "seed": seed,
        }
        check_against_the_judge(draws, [value], [cell], run, (watched, judge_score, extremes))


def test_more_bits_are_needed_equally_often_whatever_the_value(settled_draws: list[LazyDraw]) -> None:
    run = NoisyThreshold(0.0, scale_threshold=1.0, scale_query=1.0, entropy=SeededEntropy(3))
    for value in (-30.0, -1.0, 0.0, 2.0, 40.0):
        settled_draws.clear()
        run.ask_many(np.full(2_000_000, value), until="all")
        p = 2 * binom.sf(len(settled_draws) - 1, 2_000_000, 2.0**-16)
        assert min(p, 2 * binom.cdf(len(settled_draws), 2_000_000, 2.0**-16)) > 1e-6


def test_single_questions_and_arrays_meet_the_same_threshold() -> None:
    # The query noise is far smaller than the threshold's: verdicts of one run can only agree.
    for seed in range(30):
        run = NoisyThreshold(0.0, scale_threshold=1.0, scale_query=1e-12, entropy=SeededEntropy(seed))
        first = run.ask(0.0)
        assert run.ask_many(np.zeros(50), until="all").tolist() == [first] * 50
        assert run.ask(0) == run.ask(Fraction(0)) == run.ask(np.float64(0)) == run.ask(np.float32(0)) == first
        assert run.ask_many([0] * 3, until="all").tolist() == [first] * 3
        assert run.ask_many([Fraction(0)] * 3, until="all").tolist() == [first] * 3


def test_a_scan_stops_at_the_first_top_wherever_it_is() -> None:
    for place in (0, 1, 1023, 1024, 1025, 33791, 33792, 80_000):
        values = np.zeros(90_000)
        values[place:] = 1000.0
        verdicts = NoisyThreshold(500.0, scale_threshold=1.0, scale_query=1.0).ask_many(values)
        assert len(verdicts) == place + 1
        assert verdicts[-1]
        assert not verdicts[:-1].any()
    assert not NoisyThreshold(500.0, scale_threshold=1.0, scale_query=1.0).ask_many(np.zeros(5)).any()


def test_a_threshold_asked_often_stays_short() -> None:
    run = NoisyThreshold(0.0, scale_threshold=1.0, scale_query=1.0)
    run.ask_many(np.zeros(3_000_000), until="all")
    assert run._draw.length <= 64 + 2 * 64


def test_a_noisy_threshold_is_not_copied_shown_or_continued_in_a_forked_child() -> None:
    run = NoisyThreshold(0.25, scale_threshold=1.0, scale_query=1.0)
    assert repr(run) == "NoisyThreshold(law=normal)"
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(StateRefused, match="not copied or pickled"):
            attempt(run)
    script = (
        "import os; from dpselect.noise.scan import NoisyThreshold; from dpselect.errors import StateRefused\n"
        "run = NoisyThreshold(0.0, scale_threshold=1.0, scale_query=1.0)\n"
        "if os.fork() == 0:\n"
        "    refused = 0\n"
        "    for ask in (lambda: run.ask(0.0), lambda: run.ask(1), lambda: run.ask_many([0.0])):\n"
        "        try: ask()\n"
        "        except StateRefused: refused += 1\n"
        "    os._exit(refused)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    )
    assert hasattr(os, "fork")
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 3


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), True, "7.25", None, 1 + 2j])
def test_a_question_that_is_no_number_is_refused_without_repeating_it(value: Any) -> None:
    entropy = SeededEntropy(1)
    run = NoisyThreshold(0.0, scale_threshold=1.0, scale_query=1.0, entropy=entropy)
    before = entropy._stream.used
    with pytest.raises(InvalidData, match=r"^value must be a finite number$"):
        run.ask(value)
    with pytest.raises(InvalidData, match="values must be") as caught:
        run.ask_many([0.125, value])
    assert "7.25" not in str(caught.value)
    assert "0.125" not in str(caught.value)
    assert entropy._stream.used == before


def test_bad_parameters_are_refused_with_their_value() -> None:
    with pytest.raises(InvalidParameter, match=r"scale_query must be positive and finite; got 0\.0"):
        NoisyThreshold(0.0, scale_threshold=1.0, scale_query=0.0)
    with pytest.raises(InvalidParameter, match="scale_threshold must be finite; got inf"):
        NoisyThreshold(0.0, scale_threshold=float("inf"), scale_query=1.0)
    with pytest.raises(InvalidParameter, match="threshold must be finite; got nan"):
        NoisyThreshold(float("nan"), scale_threshold=1.0, scale_query=1.0)
    run = NoisyThreshold(0.0, scale_threshold=1.0, scale_query=1.0)
    with pytest.raises(InvalidParameter, match="until must be 'first' or 'all'; got 'last'"):
        run.ask_many([0.0], until="last")  # type: ignore[arg-type]
