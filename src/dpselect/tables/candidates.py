"""All kinds of public candidates under one name."""

from __future__ import annotations

from typing import Literal, TypeAlias

from dpselect.tables.calendar import Calendar, Categories
from dpselect.tables.cycles import Cycle

Candidates: TypeAlias = Calendar | Cycle | Categories
#: What a candidate may be, where it is told by time.
Every: TypeAlias = Literal["hour", "day", "week", "month", "weekday", "hour-of-day", "month-of-year"]
