"""One call from rows to an answer; answers print, stand in a notebook, become a page or a record."""

from __future__ import annotations

import json
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect as dp
from dpselect.dataset import WatchRequest
from dpselect.dataset import rows as access
from dpselect.dataset.dataset import DatasetChanges
from dpselect.dataset.facts import FactChanges, Facts
from dpselect.errors import BudgetExhausted, InvalidParameter, SourceError
from dpselect.tables import BoundedQuery, Question

JANUARY = {"start": "2013-01-01", "end": "2013-01-31"}


@pytest.fixture
def rows() -> Any:
    """Twenty homes over January; the 20th is the peak by far, and from the 20th to the 22nd it is cold."""
    pyarrow = pytest.importorskip("pyarrow")
    days = [f"2013-01-{day:02d}" for day in range(1, 32)]
    kwh = {"2013-01-20": 9.0, "2013-01-21": 8.0, "2013-01-22": 8.0}
    return pyarrow.table(
        {
            "meter": [f"home-{home}" for home in range(20) for _ in days],
            "at": days * 20,
            "kwh": [kwh.get(day, 1.0) for _ in range(20) for day in days],
        }
    )


def homes(rows: Any, **changes: Any) -> dp.Dataset:
    facts = {"user": "meter", "time": "at", "value": "kwh", "cap": 10, "population": 20}
    return dp.Dataset(rows, **(facts | changes))


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "file"])
def test_one_call_answers_whatever_holds_the_rows(rows: Any, kind: str, tmp_path: Path) -> None:
    source: Any = rows
    if kind == "pandas":
        source = rows.to_pandas()
    elif kind == "polars":
        source = pytest.importorskip("polars").from_arrow(rows)
    elif kind == "file":
        source = tmp_path / "readings.csv"
        rows.to_pandas().to_csv(source, index=False)
    answer = homes(source).peak(epsilon=2000, **JANUARY)
    assert answer.label == "2013-01-20"
    assert answer.epsilon <= 2000


def test_a_tiny_epsilon_answers_anything(rows: Any) -> None:
    """The negative control: noise is really added."""
    data = homes(rows)
    assert len({data.peak(epsilon=1e-4, anyway=True, **JANUARY).label for _ in range(12)}) > 3


@pytest.mark.parametrize("measure", ["mean", "sum"])
def test_a_population_that_is_too_small_changes_the_unit_and_not_the_winner(rows: Any, measure: str) -> None:
    """Every total lies beyond what two persons can come to: cut there, all days but the ordinary would look alike."""
    data = homes(rows, population=2, measure=measure)
    answer = data.peak(epsilon=2000, how_much=True, **JANUARY)
    assert answer.label == "2013-01-20"
    assert answer.amounts is not None
    assert abs(answer.amounts[0] - (90 if measure == "mean" else 180)) < 1
    assert "More than 2 persons must have rows" in " ".join(str(answer).split())
    enough = homes(rows, measure=measure).peak(epsilon=2000, how_much=True, **JANUARY)
    assert "must have rows" not in " ".join(str(enough).split())
    assert "cut to their range" not in " ".join(str(answer).split())  # 90 of at most 10 is not


def test_where_a_range_is_paid_for_totals_are_cut_and_the_answer_says_so(rows: Any) -> None:
    """The negative control: Gaussian noise is pure on a bounded range only."""
    data = homes(rows, population=1)
    answers = [data.peak(epsilon=2000, mechanism="gaussian", anyway=True, **JANUARY) for _ in range(12)]
    assert len({answer.label for answer in answers}) > 3
    assert "With rows of more than 1 persons the totals would be cut" in " ".join(str(answers[0]).split())


@given(st.lists(st.integers(0, 3000), min_size=2, max_size=6), st.data(), st.sampled_from([2, 3, 7]))
def test_one_person_moves_uncut_values_by_at_most_delta_and_one_way(
    steps: list[int], drawn: st.DataObject, persons: int
) -> None:
    question = Question(user="u", time="t", value="v", cap=10, grid=1000, population=persons)
    more = [one + drawn.draw(st.integers(0, 1000)) for one in steps]

    def values(totals: list[int]) -> list[Fraction]:
        cut = tuple(min(total, question.most_steps) for total in totals)
        query = BoundedQuery(
            labels=tuple("abcdef"[: len(totals)]),
            family=question.family,
            totals=cut,
            step=question.step,
            uncut=tuple(totals) if cut != tuple(totals) else None,
        )
        return [Fraction(value) for value in query.uncut_values]

    moved = [after - before for before, after in zip(values(steps), values(more), strict=True)]
    assert all(0 <= one <= Fraction(question.family.sensitivity) for one in moved)


def test_an_answer_hardly_better_than_a_guess_costs_nothing(rows: Any) -> None:
    data = homes(rows, total=1.0)
    with pytest.raises(InvalidParameter, match="hardly be better than a guess"):
        data.peak(epsilon=0.01, **JANUARY)
    assert data.spent == 0
    data.peak(epsilon=0.01, anyway=True, **JANUARY)
    assert data.spent > 0


def test_an_answer_prints_becomes_a_page_and_a_record(rows: Any, tmp_path: Path) -> None:
    answer = homes(rows).peak(epsilon=2000, **JANUARY)
    assert "For which day is the mean of kwh" in str(answer)
    assert "2013-01-20" in str(answer)
    assert "Guarantee: pure ε = 2000" in str(answer)
    assert "2013-01-20" in answer._repr_html_()
    assert "<script" not in answer._repr_html_()
    assert json.loads(json.dumps(answer.to_dict()))["answer"] == "2013-01-20"
    assert "What is promised" in answer.report(tmp_path / "page.html").read_text(encoding="utf-8")
    (tmp_path / "other.html").write_text("my thesis")
    with pytest.raises(SourceError, match="no report of dpselect"):
        answer.report(tmp_path / "other.html")


def test_a_watch_names_the_days_above_the_line(rows: Any) -> None:
    answer = homes(rows).watch(threshold=5, budget=500, expect=3, **JANUARY)
    assert answer.labels == ("2013-01-20", "2013-01-21", "2013-01-22")
    assert not answer.ended
    assert answer.to_dict()["above"] == 3
    assert "3 of 31 days" in str(answer)
    assert "2013-01-21" in answer._repr_html_()


def test_plans_read_nothing_and_spend_nothing() -> None:
    data = homes("no/such/file.parquet", total=1.0)
    plan = data.plan(epsilon=0.5, **JANUARY)
    assert plan.cost("gaussian") <= 0.5
    assert set(plan.plans) == {"gaussian", "permute-and-flip", "exponential", "laplace"}
    assert data.plan(threshold=5, budget=1, **JANUARY).to_dict()["budget"] == 1
    assert data.spent == 0


def test_the_budget_holds_over_several_questions_and_a_refusal_costs_nothing(rows: Any) -> None:
    data = homes(rows, total=1.0)
    answer = data.peak(epsilon=0.5, anyway=True, **JANUARY)
    assert "0.5 of the total of 1 is left while this program runs" in " ".join(str(answer).split())
    spent = data.spent
    assert 0.4 < spent <= 0.5
    with pytest.raises(BudgetExhausted, match="nothing was asked"):
        data.watch(threshold=5, budget=0.75, anyway=True, **JANUARY)
    assert data.spent == spent
    data.watch(threshold=5, budget=0.5, anyway=True, **JANUARY)
    with pytest.raises(BudgetExhausted):
        data.peak(epsilon=0.45, anyway=True, **JANUARY)


def test_a_column_that_is_not_there_costs_nothing(rows: Any) -> None:
    """Names of columns are looked at before the charge; readings after it."""
    data = homes(rows, value="kWh", total=1.0)
    with pytest.raises(SourceError, match="no column"):
        data.peak(epsilon=0.5, anyway=True, **JANUARY)
    with pytest.raises(SourceError, match="no column"):
        data.watch(threshold=5, budget=0.5, anyway=True, **JANUARY)
    assert data.spent == 0


def test_a_failed_reading_is_counted_since_it_was_charged_before(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charge first, then touch the data: whatever fails afterwards stays counted."""
    data = homes(rows, total=1.0)

    def fail(*_: object, **__: object) -> None:
        raise SourceError("the table went away")

    monkeypatch.setattr(access, "read", fail)
    with pytest.raises(SourceError, match="went away"):
        data.peak(epsilon=0.5, anyway=True, **JANUARY)
    assert data.spent > 0
    watched = homes(rows, total=1.0)
    with pytest.raises(SourceError, match="went away"):
        watched.watch(threshold=5, budget=0.5, anyway=True, **JANUARY)
    assert watched.spent > 0


def test_a_seeded_source_repeats_itself_and_says_so(rows: Any) -> None:
    answers = [homes(rows, entropy=dp.SeededEntropy(5)).peak(epsilon=0.01, anyway=True, **JANUARY) for _ in range(3)]
    assert len({answer.label for answer in answers}) == 1
    assert answers[0].noise == "reproducible"
    assert "not private" in str(answers[0])


def test_nothing_private_shows_in_the_data_set(rows: Any) -> None:
    data = homes("postgres://curator:hunter2@host/db", table="readings")
    assert "hunter2" not in repr(data)
    assert "home-1" not in repr(homes(rows))


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"user": None}, "user"),
        ({"population": None}, "population"),
        ({"monotone": True}, "monotone"),
        ({"maximum": 5}, "user"),
    ],
)
def test_a_refusal_names_the_parameter(rows: Any, changes: dict[str, Any], parameter: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        homes(rows, **changes)
    assert caught.value.parameter == parameter
    assert "‹" not in str(caught.value)
    assert caught.value.told(lambda name: f"--{name}").startswith(f"--{parameter}")


def test_a_misspelt_parameter_is_a_type_error(rows: Any) -> None:
    data = homes(rows)
    for asked, name in (
        (lambda: homes(rows, populaton=3), "populaton"),
        (lambda: data.peak(epsilom=1, **JANUARY), "epsilom"),
        (lambda: data.watch(5, budgt=1, **JANUARY), "budgt"),
        (lambda: data.plan(threshold=5, budgt=1, **JANUARY), "budgt"),
        (lambda: data.describe(populaton=3), "populaton"),
    ):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            asked()


def test_what_open_and_describe_take_is_what_a_data_set_takes() -> None:
    facts = {one.name for one in fields(Facts)}
    assert set(FactChanges.__annotations__) == facts
    assert set(DatasetChanges.__annotations__) == {one.name for one in fields(dp.Dataset)} - {"budget"}


def test_a_plan_takes_no_parameter_of_the_other_verb(rows: Any) -> None:
    data = homes(rows)
    for asked, parameter in (({"epsilon": 1, "expect": 3}, "expect"), ({"threshold": 5, "budget": 1, "top": 2}, "top")):
        with pytest.raises(InvalidParameter) as caught:
            data.plan(**asked, **JANUARY)
        assert caught.value.parameter == parameter


def test_the_rule_that_was_broken_can_be_read(rows: Any) -> None:
    with pytest.raises(InvalidParameter) as caught:
        homes(rows, cap=-1).peak(epsilon=1, **JANUARY)
    assert (caught.value.parameter, caught.value.rule) == ("cap", "positive")
    with pytest.raises(InvalidParameter, match="budget must be positive"):
        WatchRequest(threshold=5, budget=0)


def test_the_curator_sees_counts_only_when_asking_for_them(rows: Any) -> None:
    found = homes(rows).describe(**JANUARY).report
    assert found is not None
    assert found.rows == 620
    assert found.lines()[0].startswith("sensitive")
