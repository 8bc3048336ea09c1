"""What is said of a watch beforehand holds as often as it says, on streams that nothing was settled on."""

from fractions import Fraction

import numpy as np
import pytest
from tests.planning.streams import DAYS, KINDS, stream
from tests.planning.test_robust_outlook import lived as lived_one_by_one
from tests.planning.test_whole_set import set_scores

from dpselect import QueryFamily
from dpselect.dataset import WatchRequest
from dpselect.planning import Profile
from dpselect.planning.outlook import stated_range

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1 / 3000, monotone=True)
KNOWN = ("nothing", "share", "range", "range and share", "series")


def told(known, past, future, line):
    """What a person who knows the truth says of the year after, or shows of the year before."""
    number, ends = int((future >= line).sum()), (float(future.min()), float(future.max()))
    return {
        "nothing": {},
        "share": {"expect": number or None},
        "range": {"between": ends},
        "range and share": {"between": ends, "expect": number or None},
        "series": {"like": Profile(tuple(past), public=True)},
    }[known]


def lived(plan, future, *, passes):
    """F1 of so many watches of the year after."""
    return set_scores(plan, future, passes=passes) if plan.at_once else lived_one_by_one(plan, future, passes=passes)


def within(kind, seed, epsilon, known, *, passes=100):
    """How many of so many watches of the year after lie in the range stated beforehand; how wide it is; and how far the
    mean lies above what was predicted. None where no share can be stated.
    """
    past, future, line = stream(kind, seed=seed)
    above = int((future >= line).sum())
    if "share" in known and not 0 < above < DAYS:
        return None
    asked = WatchRequest(threshold=line, budget=epsilon, **told(known, past, future, line))
    plan = asked.ranked(FAMILY, questions=DAYS, unit=Fraction(1), whole=True)[0]
    f1 = lived(plan, future, passes=passes)
    low, high = plan.prediction.low, plan.prediction.high
    inside = (f1 >= low - 0.005) & (f1 <= high + 0.005)
    return float(inside.mean()), high - low, float(f1.mean()) - plan.prediction.score


def test_the_range_lies_around_what_is_predicted_and_narrows_with_knowledge():
    ends = {known: stated_range(0.7, known) for known in KNOWN}
    assert all(low < 0.7 < high for low, high in ends.values())
    widths = {known: high - low for known, (low, high) in ends.items()}
    assert widths["nothing"] > widths["range"] > widths["range and share"] > 0.2
    assert stated_range(1.0, "series")[1] <= 1.0


def test_one_kind_of_each_knowledge_lies_in_its_range():
    """A season, of which everything is told in turn: most watches lie in the range, and one of twice the error not."""
    for known in KNOWN:
        share, _, _ = within("season", 41, 1.0, known)
        assert share > 0.5, known
    low, _ = stated_range(0.9, "share")
    assert low > 1 - 2 * (1 - 0.9)


@pytest.mark.slow
@pytest.mark.parametrize("known", KNOWN)
def test_four_times_of_five_is_what_happens_on_streams_that_nothing_was_settled_on(known):
    found = [within(kind, seed, epsilon, known) for kind in KINDS for seed in (31, 32) for epsilon in (0.5, 2.0)]
    shares = [one[0] for one in found if one is not None]
    # Two years of a dozen kinds: the mean of so few has a standard error of about .07.
    assert np.mean(shares) == pytest.approx(0.8, abs=0.15)
