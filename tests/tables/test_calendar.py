from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.tables import Calendar, Categories

moments = st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2035, 12, 31))


@settings(deadline=None, max_examples=150)
@given(moments, st.integers(min_value=0, max_value=400), st.sampled_from(["hour", "day", "week", "month"]))
def test_every_moment_between_start_and_end_lies_in_one_period(start, days, every):
    calendar = Calendar(start.date(), start.date() + timedelta(days=days), every=every)
    assert len(calendar.labels) == len(calendar) == len(set(calendar.labels))
    for moment in (start, start + timedelta(days=days) * 0.5, start.replace(hour=23) + timedelta(days=days)):
        index = calendar.index(moment)
        assert index is not None
        assert calendar.begins(index) <= moment < calendar.begins(index + 1)
    assert calendar.index(calendar.first - timedelta(microseconds=1)) is None
    assert calendar.index(calendar.past) is None
    assert calendar.index(calendar.past - timedelta(microseconds=1)) == len(calendar) - 1


@settings(deadline=None, max_examples=80)
@given(
    st.datetimes(min_value=datetime(2010, 1, 2), max_value=datetime(2019, 12, 30)),
    st.sampled_from(["Europe/London", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]),
)
def test_plain_offsets_give_the_zone_s_wall_clock(moment, name):
    changes, offsets = ten_years(name)
    instant = moment.replace(tzinfo=UTC)
    seconds = int(instant.timestamp())
    offset = offsets[sum(change <= seconds for change in changes)]
    expected = instant.astimezone(ZoneInfo(name)).replace(tzinfo=None)
    assert moment.replace(microsecond=0) + timedelta(seconds=offset) == expected.replace(microsecond=0)


def ten_years(name):
    return Calendar("2010-01-01", "2019-12-31", timezone=name).offsets()


def test_the_clocks_going_back_repeat_one_label_and_going_forward_skip_one():
    autumn = Calendar("2013-10-27", "2013-10-27", every="hour", timezone="Europe/London")
    assert len(autumn) == 24
    assert autumn.index(datetime(2013, 10, 27, 0, 30, tzinfo=UTC)) == 1
    assert autumn.index(datetime(2013, 10, 27, 1, 30, tzinfo=UTC)) == 1
    spring = Calendar("2013-03-31", "2013-03-31", every="hour", timezone="Europe/London")
    seen = {spring.index(datetime(2013, 3, 31, tzinfo=UTC) + timedelta(hours=hour)) for hour in range(23)}
    assert seen == set(range(24)) - {1}


def test_labels_name_the_period():
    assert Calendar("2013-01-03", "2013-01-20", every="week").labels == ("2013-01-03", "2013-01-10", "2013-01-17")
    assert Calendar("2013-01-03T05:45", "2013-01-03T06:10", every="hour").labels == (
        "2013-01-03 05:00",
        "2013-01-03 06:00",
    )
    assert Calendar(date(2013, 1, 31), datetime(2013, 3, 1), every="month").labels == (
        "2013-01",
        "2013-02",
        "2013-03",
    )


def test_a_zoned_moment_has_no_place_in_a_calendar_without_zone():
    assert Calendar("2013-01-01", "2013-01-02").index(datetime(2013, 1, 1, tzinfo=UTC)) is None


def test_categories_keep_their_order_and_are_text():
    assert Categories(["b", 7]).labels == ("b", "7")
    assert len(Categories(iter("ab"))) == 2


def test_calendars_are_compared_by_what_they_say():
    assert Calendar("2013-01-01", "2013-01-02") == Calendar("2013-01-01", "2013-01-02")
    with pytest.raises(AttributeError):
        Calendar("2013-01-01", "2013-01-02").every = "hour"
