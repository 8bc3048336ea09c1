"""The planner ranks honestly, says what is better, and says when nothing will do."""

import pytest

from dpselect import QueryFamily
from dpselect.errors import InvalidParameter
from dpselect.planning import Job, Profile, compare, frontier, ways_for
from dpselect.report.page import html_page
from dpselect.report.plan_page import plan_report

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)
SELECTION = Job(asked="largest", family=FAMILY, count=365, epsilon=0.2)
STREAM = Job(asked="crossings", family=FAMILY, count=80, epsilon=1.0, threshold=0.6, share=0.2, outlook="steady")
FEW = ("laplace-kept", "exponential-rationed", "laplace-release")


def with_(job, **changes):
    return Job(**{name: getattr(job, name) for name in job.__dataclass_fields__} | changes)


def test_permute_and_flip_is_named_where_it_wins():
    found = compare(SELECTION)
    assert found.best.name == "permute-and-flip"
    assert found.plan("gaussian-noisy-max").prediction.score < found.best.prediction.score
    assert found.advice.startswith("Permute-and-flip answers this best")
    assert "Gaussian noise only where it is there already" in found.advice


def test_releasing_everything_is_named_where_it_wins():
    fine = QueryFamily(lower=0, upper=1, sensitivity=1 / 7000, monotone=True)
    job = with_(STREAM, family=fine, count=300, share=0.3, delta=1e-4)
    found = compare(job, ways=(*FEW, "gaussian-release"))
    assert found.best.name == "gaussian-release"
    assert "Release of every value, Gaussian noise does best" in found.advice
    assert "only if δ must be 0 or the stream may go on" in found.advice


def test_ranks_fall_with_the_cautious_score():
    first, *rest = (plan.prediction for plan in compare(STREAM, ways=FEW).plans)
    scores = [one.cautious for one in rest]
    assert scores == sorted(scores, reverse=True)
    # Of those that cannot be told apart the first does best if all is as expected.
    assert first.cautious >= max(scores) - 0.01
    assert all(first.score >= one.score for one in rest if one.cautious >= max(first.cautious, *scores) - 0.01)


def test_the_same_seed_gives_the_same_plans():
    assert compare(STREAM, ways=FEW[:1]) == compare(STREAM, ways=FEW[:1])
    assert compare(STREAM, ways=FEW[:1], seed=2) != compare(STREAM, ways=FEW[:1])


def test_pure_jobs_meet_pure_ways_only():
    for job in (SELECTION, STREAM):
        assert set(ways_for(job)) < set(ways_for(with_(job, delta=1e-6)))
    with pytest.raises(InvalidParameter, match="ways must be among"):
        compare(SELECTION, ways=["gaussian-release"])


def test_several_names_are_not_promised_by_the_profile_whose_delta_is_for_one():
    assert "gaussian-noisy-max-profile" in ways_for(with_(SELECTION, delta=1e-6))
    assert "gaussian-noisy-max-profile" not in ways_for(with_(SELECTION, delta=1e-6, top=3))


@pytest.mark.parametrize("job", [with_(SELECTION, epsilon=1e-7), with_(STREAM, epsilon=1e-6)])
def test_an_impossible_budget_names_the_smallest_that_would_do(job):
    chosen = None if job.asked == "largest" else ("laplace-kept",)
    with pytest.raises(InvalidParameter, match=r"epsilon must be at least (\S+) for any mechanism") as failure:
        compare(job, ways=chosen)
    least = float(str(failure.value).split("at least ")[1].split()[0])
    assert compare(with_(job, epsilon=1.1 * least), ways=chosen).best.prediction.score > 0
    with pytest.raises(InvalidParameter):
        compare(with_(job, epsilon=0.5 * least), ways=chosen)


def test_a_question_with_one_answer_is_refused_at_any_budget():
    job = Job(
        asked="crossings",
        family=FAMILY,
        epsilon=1.0,
        threshold=0.2,
        public=Profile([0.5, 0.6, 0.7], public=True),
        outlook="steady",
    )
    with pytest.raises(InvalidParameter, match="at any budget"):
        compare(job, ways=["laplace-release"])


def test_a_wanted_score_is_reached_at_a_small_budget():
    found = compare(with_(STREAM, epsilon=None, wanted=0.8), ways=("laplace-kept", "laplace-release"))
    assert [plan.epsilon for plan in found.plans] == sorted(plan.epsilon for plan in found.plans)
    for plan in found.plans:
        assert plan.prediction.cautious >= 0.8
    less = compare(with_(STREAM, epsilon=found.best.epsilon / 1.5), ways=[found.best.name])
    assert less.best.prediction.cautious < 0.8


def test_a_wanted_score_beyond_the_budget_says_what_it_takes():
    with pytest.raises(InvalidParameter, match="the least that does is about"):
        compare(with_(STREAM, epsilon=0.05, wanted=0.9), ways=["laplace-kept"])


def test_more_budget_buys_more_on_the_frontier():
    found = frontier(with_(STREAM, delta=1e-5), epsilons=[0.25, 1.0, 4.0], ways=(*FEW, "gaussian-release"))
    assert set(found.lines) == {*FEW, "gaussian-release"}
    for line in found.lines.values():
        scores = [plan.prediction.score for plan in line]
        assert scores == sorted(scores)
    page = html_page(plan_report(compare(STREAM, ways=FEW), frontier=found))
    assert "<svg" in page
    assert "F1" in page
    assert found.as_document()["laplace-kept"][0][0] == 0.25


def test_progress_moves_forward_to_the_end():
    shares = []
    compare(STREAM, ways=FEW, on_progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
