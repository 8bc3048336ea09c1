"""One person more or less moves every query by at most Δ, all the same way when the family says so."""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.errors import SourceError
from dpselect.tables import Calendar, Question, bounded_query, open_source
from dpselect.tables.readings import gathered_steps
from dpselect.tables.rows import slot_keys, usable_rows

DAYS = Calendar("2013-03-30", "2013-04-02")
USERS = ["a", "b", "c", "", None]

readings = st.one_of(
    st.none(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(min_value=-1, max_value=12),
    st.sampled_from([0.005, 0.015, 10.0, 1e299, 1e300]),
)
moments = st.one_of(
    st.none(),
    st.integers(min_value=-30, max_value=5 * 24).map(lambda hour: datetime(2013, 3, 30) + timedelta(hours=hour)),
)
rows = st.lists(st.tuples(st.sampled_from(USERS), moments, readings), max_size=25)
newcomer = st.lists(st.tuples(st.just("newcomer"), moments, readings), max_size=12)
questions = st.builds(
    lambda measure, per_user, grid, population, duplicates, adjacency: Question(
        user="user",
        time="at",
        value="kwh",
        measure=measure,
        per_user=per_user,
        cap=None if measure == "count" else "10",
        grid=grid,
        population=population,
        duplicates=duplicates,
        adjacency=adjacency,
    ),
    st.sampled_from(["mean", "sum", "count"]),
    st.sampled_from(["sum", "mean", "max"]),
    st.sampled_from([1, 7, 100, 10**6]),
    st.integers(min_value=1, max_value=5),
    st.sampled_from(["keep", "largest"]),
    st.sampled_from(["add-remove", "replace"]),
)


def as_table(listed) -> pa.Table:
    users, at, kwh = zip(*listed, strict=True) if listed else ((), (), ())
    return pa.table(
        {
            "user": pa.array(users, pa.string()),
            "at": pa.array(at, pa.timestamp("us")),
            "kwh": pa.array(kwh, pa.float64()),
        }
    )


def check_neighbours(values, neighbours, family) -> None:
    """The promise a family makes, on numbers exactly as a mechanism will see them."""
    moves = [Fraction(float(new)) - Fraction(float(old)) for old, new in zip(values, neighbours, strict=True)]
    assert all(family.lower <= value <= family.upper for value in [*values, *neighbours])
    assert all(abs(move) <= Fraction(family.sensitivity) for move in moves)
    if family.monotone:
        assert min(moves) >= 0 or max(moves) <= 0


def asked(listed, question):
    """The answer. Rows that all lie outside the calendar are refused to the curator; here they stand for none."""
    moments = [moment for _, moment, _ in listed if moment is not None]
    if moments and all(DAYS.index(moment) is None for moment in moments):
        with pytest.raises(SourceError, match="lies in the calendar"):
            bounded_query(as_table(listed), question, DAYS)
        listed = []
    return bounded_query(as_table(listed), question, DAYS)


def check_newcomer(others, theirs, question):
    before = asked(others, question)
    after = asked(theirs[:3] + others + theirs[3:], question)
    check_neighbours(before.values, after.values, after.family)
    assert all(new >= old for old, new in zip(before.totals, after.totals, strict=True))


@settings(deadline=None, max_examples=40)
@given(rows, newcomer, questions)
def test_adding_a_person_moves_no_query_by_more_than_the_sensitivity(others, theirs, question):
    check_newcomer(others, theirs, question)


@pytest.mark.slow
@settings(deadline=None, max_examples=600)
@given(rows, newcomer, questions)
def test_adding_a_person_moves_no_query_by_more_than_the_sensitivity_many_times(others, theirs, question):
    check_newcomer(others, theirs, question)


@settings(deadline=None, max_examples=40)
@given(rows, newcomer, newcomer, questions)
def test_replacing_a_person_moves_no_query_by_more_than_the_sensitivity(others, theirs, instead, question):
    if question.adjacency == "add-remove":
        return
    before = asked(theirs + others, question)
    after = asked(others + instead, question)
    assert not after.family.monotone
    check_neighbours(before.values, after.values, after.family)


def test_calling_replacement_monotone_fails_the_neighbour_check():
    question = Question(user="user", time="at", value="kwh", cap=10, grid=100, population=5)
    first = [("newcomer", datetime(2013, 3, 30), 9.0)]
    second = [("newcomer", datetime(2013, 3, 31), 9.0)]
    before, after = (bounded_query(as_table(table), question, DAYS) for table in (first, second))
    assert after.family.monotone
    with pytest.raises(AssertionError):
        check_neighbours(before.values, after.values, after.family)


def test_a_variant_without_the_cut_per_person_fails_the_neighbour_check():
    question = Question(user="user", time="at", value="kwh", cap=10, grid=100, population=5)
    others = [("a", datetime(2013, 3, 30, 5), 2.0)]
    theirs = [("newcomer", datetime(2013, 3, 30, hour), 9.0) for hour in range(5)]

    def careless(listed):
        uncut = gathered_steps(usable_rows(open_source(as_table(listed)), question, DAYS), question)
        keyed = uncut.mutate(key=slot_keys(uncut["slot"], DAYS))
        found = keyed.group_by("key").agg(total=keyed["steps"].sum()).to_pyarrow().to_pydict()
        by_key = dict(zip(found["key"], found["total"], strict=True))
        return [float(by_key.get(index, 0) * question.step) for index in range(len(DAYS))]

    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        before, after = careless(others), careless(others + theirs)
    with pytest.raises(AssertionError):
        check_neighbours(before, after, question.family)
    kept = [bounded_query(as_table(listed), question, DAYS).values for listed in (others, others + theirs)]
    check_neighbours(*kept, question.family)


@settings(deadline=None, max_examples=200)
@given(
    st.integers(min_value=1, max_value=10**7),
    st.sampled_from([1, 3, 50_000, 10**6, 2**20]),
    st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000),
    st.sampled_from(["mean", "sum"]),
    st.data(),
)
def test_writing_values_as_doubles_never_breaks_the_sensitivity(population, grid, cap, measure, data):
    question = Question(user="u", time="t", value="v", cap=cap, grid=grid, population=population, measure=measure)
    total = data.draw(st.integers(min_value=0, max_value=question.most_steps - grid))
    before, after = float(total * question.step), float((total + grid) * question.step)
    assert Fraction(after) - Fraction(before) <= Fraction(question.family.sensitivity)
    assert after <= question.family.upper
    assert question.family.sensitivity <= float(grid * question.step) * (1 + 1e-6)


def test_one_over_n_itself_would_be_too_small_for_written_values():
    question = Question(user="u", time="t", value="v", cap=1, grid=1, population=49)
    moves = [Fraction(float(k + 1) / 49) - Fraction(k / 49) for k in range(49)]
    assert max(moves) > Fraction(1, 49)
    assert max(moves) > Fraction(1 / 49)
    assert max(moves) <= Fraction(question.family.sensitivity)
