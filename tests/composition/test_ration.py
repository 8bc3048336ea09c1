"""A rationed budget: each ⊤ is paid at its own price, the sum bounds the loss, and the budget lasts."""

import contextlib
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.composition.test_interruptions import interrupted

from dpselect import ExponentialAboveThreshold, LaplaceAboveThreshold, QueryFamily
from dpselect.composition import SparseVector, ZCDPFilter
from dpselect.composition.ration import Ration
from dpselect.errors import InvalidParameter, StateRefused
from dpselect.noise.entropy import SeededEntropy
from dpselect.noise.scan import NoisyThreshold

LINE = 0.5


def family_of(monotone=True, sensitivity=0.05):
    return QueryFamily(lower=0, upper=1, sensitivity=sensitivity, monotone=monotone)


def watcher_of(family, scale=0.2):
    return ExponentialAboveThreshold(family, threshold=LINE, scale_threshold=scale, scale_query=0.2)


def rationed(family, ration, *, budget=1.5, seed=0, **more):
    return SparseVector(
        watcher_of(family), budget=budget, resample=False, ration=ration, entropy=SeededEntropy(seed), **more
    )


def priced(family, ration, answers, *, budget):
    """The scales of a transcript's questions, and its loss: what the sparse vector does, written down once more."""
    first, each = family.sensitivity / 0.2, family.sensitivity * (1 if family.monotone else 2)
    paid, rare, scales = 0.0, 0, []
    for asked, above in enumerate(answers):
        price = float(ration.price(asked, rare, left=budget - first - paid))
        scales.append(each / price)
        if above == (ration.rare == "above"):
            rare, paid = rare + 1, paid + price
    return scales, first + paid


def log_probability(family, ration, answers, values, *, budget):
    """By quadrature over the draw of the threshold."""
    scales, _ = priced(family, ration, answers, budget=budget)
    side = 1.0 if ration.rare == "above" else -1.0
    x = np.linspace(0.0, 40.0, 20_001)
    density = np.exp(-x)
    for above, value, scale in zip(answers, values, scales, strict=True):
        level = side * LINE + float(ExponentialAboveThreshold.offset(0.2, scale)) + ration.lean * scale
        gap = (level + 0.2 * x - side * value) / scale
        tail = np.exp(-np.maximum(gap, 0.0))
        density = density * (tail if above == (ration.rare == "above") else 1.0 - tail)
    return math.log(max(float(np.trapezoid(density, x)), 1e-300))


@pytest.mark.parametrize("rare", ["above", "below"])
@pytest.mark.parametrize("monotone", [True, False])
def test_no_transcript_tells_more_than_its_prices(monotone, rare):
    """All sixteen transcripts of four questions; with half of each price charged the bound is exceeded."""
    family, budget = family_of(monotone), 1.5
    ration = Ration(questions=4, expected=(1.0, 0.5), together=1.5, hold=(0.5, 2.0), lean=0.3, rare=rare)
    generator = np.random.default_rng(3)
    share_of_bound = 0.0
    for values in ([0.3, 0.45, 0.6, 0.7], [0.45, 0.45, 0.45, 0.45], [0.55, 0.2, 0.9, 0.5]):
        moves = [np.ones(4), -np.ones(4)] if monotone else [generator.choice([-1.0, 1.0], 4) for _ in range(6)]
        for move, answers in itertools.product(moves, itertools.product([False, True], repeat=4)):
            moved = np.array(values) + family.sensitivity * move
            first, second = (log_probability(family, ration, answers, v, budget=budget) for v in (values, moved))
            _, loss = priced(family, ration, answers, budget=budget)
            assert first - second <= loss + 1e-5, (answers, move)
            if max(first, second) > -20:
                share_of_bound = max(share_of_bound, (first - second) / loss)
    assert share_of_bound > 0.5


@pytest.mark.parametrize("rare", ["above", "below"])
@pytest.mark.parametrize("monotone", [True, False])
def test_what_is_charged_is_the_price_of_the_rare_answers(monotone, rare, monkeypatch):
    """And the noise of every question is what its price asks for, against the level that the proof takes it to be."""
    made, asked = {}, []
    rescaled, ask = NoisyThreshold.rescaled, NoisyThreshold.ask

    def watched(self, level, *, scale_query):
        line = rescaled(self, level, scale_query=scale_query)
        made[id(line)] = line, float(level), float(scale_query)
        return line

    monkeypatch.setattr(NoisyThreshold, "rescaled", watched)
    monkeypatch.setattr(NoisyThreshold, "ask", lambda self, value: asked.append(made[id(self)]) or ask(self, value))
    family = family_of(monotone)
    ration = Ration(questions=30, expected=(6.0, 2.0), together=2.0, hold=(0.5, 1.0), lean=0.1, rare=rare)
    vector = rationed(family, ration, seed=4)
    answers = vector.ask_many(np.linspace(0.2, 0.8, 30))
    assert len(answers) == 30
    scales, loss = priced(family, ration, answers.tolist(), budget=1.5)
    assert vector.spent == pytest.approx(loss, rel=1e-12)
    side = LINE if rare == "above" else -LINE
    levels = [side + float(ExponentialAboveThreshold.offset(0.2, scale)) + 0.1 * scale for scale in scales]
    assert [scale for _, _, scale in asked] == pytest.approx(scales, rel=1e-9)
    assert [level for _, level, _ in asked] == pytest.approx(levels, rel=1e-9)
    vector.close()
    assert vector.filter.spent == vector.spent <= 1.5


@given(
    values=st.lists(st.floats(0, 1), min_size=1, max_size=60),
    budget=st.floats(0.3, 5.0),
    expected=st.lists(st.floats(0, 20), min_size=1, max_size=4).filter(lambda found: sum(found) > 0),
    rare=st.sampled_from(["above", "below"]),
    monotone=st.booleans(),
    questions=st.integers(1, 40),
)
@settings(deadline=None, max_examples=30)
def test_the_budget_is_kept_and_outlasts_every_stream(values, budget, expected, rare, monotone, questions):
    ration = Ration(questions=questions, expected=tuple(expected), rare=rare)
    vector = rationed(family_of(monotone), ration, budget=budget)
    assert len(vector.ask_many(values)) == len(values)
    assert vector.spent <= budget
    assert vector.can_ask


def test_one_by_one_is_the_same_as_many():
    ration, values = Ration(questions=40, expected=(5.0,)), np.linspace(0.3, 0.7, 40)
    many, single = (rationed(family_of(), ration, seed=9) for _ in range(2))
    verdicts = [single.ask(value).value == "above" for value in values.tolist()]
    assert many.ask_many(values).tolist() == verdicts
    assert many.spent == single.spent


def test_more_tops_than_expected_make_each_of_them_cheaper():
    ration = Ration(questions=100, expected=(5.0, 5.0))
    prices = [float(ration.price(50, above, left=1.0)) for above in (2, 5, 20, 50)]
    assert prices == sorted(prices, reverse=True)
    assert float(ration.price(500, 5, left=1.0)) <= 0.5


def test_an_interrupted_question_counts_at_its_price(monkeypatch):
    vector = rationed(family_of(), Ration(questions=10, expected=(3.0,)))
    vector.ask(0.1)
    before, ask = vector.spent, NoisyThreshold.ask

    def interrupted(self, value):
        ask(self, value)
        raise KeyboardInterrupt

    monkeypatch.setattr(NoisyThreshold, "ask", interrupted)
    with pytest.raises(KeyboardInterrupt):
        vector.ask(0.1)
    monkeypatch.undo()
    assert vector.spent > before
    charged = vector.spent
    vector.ask(0.1)
    assert vector.spent > charged
    assert vector.runs[0].epsilon == charged


def test_what_cannot_be_rationed_is_refused():
    family, ration = family_of(), Ration(questions=10, expected=(3.0,))
    laplace = LaplaceAboveThreshold(family, threshold=LINE, scale_threshold=0.2, scale_query=0.2)
    for wrong in (
        {"watcher": laplace},
        {"resample": True},
        {"horizon": 5},
        {"filter": ZCDPFilter(1.0), "budget": None},
        {"ration": "sparingly"},
    ):
        given_ = {"watcher": watcher_of(family), "budget": 1.0, "resample": False, "ration": ration} | wrong
        with pytest.raises(InvalidParameter):
            SparseVector(given_.pop("watcher"), **given_)
    with pytest.raises(StateRefused, match="ledger"):
        rationed(family, ration).save()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"questions": 0}, "questions"),
        ({"expected": ()}, "expected"),
        ({"expected": (0.0, 0.0)}, "expected"),
        ({"together": 0.5}, "together"),
        ({"hold": (1.5, 2.0)}, "hold"),
        ({"lean": math.inf}, "lean"),
        ({"rare": "never"}, "rare"),
    ],
)
def test_rations_that_make_no_sense_are_refused(change, message):
    with pytest.raises(InvalidParameter, match=message):
        Ration(**{"questions": 10, "expected": (1.0,)} | change)


def test_an_interruption_at_any_line_leaves_no_answer_uncharged(monkeypatch):
    """Whatever line of the bookkeeping is broken into, every ⊤ that was drawn is paid for at its own price."""
    family, ration, ask = family_of(), Ration(questions=10, expected=(3.0,)), NoisyThreshold.ask
    drawn = []

    def witnessed(self, value):
        above = ask(self, value)
        drawn.append((above, float(self._scale_query)))
        return above

    monkeypatch.setattr(NoisyThreshold, "ask", witnessed)
    for at in itertools.count(1):
        vector = rationed(family, ration, budget=3.0)
        vector.ask(0.1)
        vector.ask(0.95)
        before, drawn[:] = vector.spent, []
        hit = interrupted(lambda vector=vector: vector.ask(0.95), at=at, by=KeyboardInterrupt)
        with contextlib.suppress(StateRefused):
            vector.ask(0.95)
        vector.close()
        paid = sum(family.sensitivity / scale for above, scale in drawn if above)
        assert before + paid - 1e-12 <= vector.filter.spent <= 3.0, at
        if not hit:
            break
    assert at > 40
