"""Bounded, fixed-point queries from tables on any engine: what the curator's rows become before any noise."""

from __future__ import annotations

from dpselect.tables.answer import BoundedQuery, bounded_query
from dpselect.tables.calendar import Calendar, Categories
from dpselect.tables.candidates import Candidates, Cycle
from dpselect.tables.curator import CuratorReport
from dpselect.tables.question import Question
from dpselect.tables.series import series_query
from dpselect.tables.source import open_source

__all__ = [
    "BoundedQuery",
    "Calendar",
    "Candidates",
    "Categories",
    "CuratorReport",
    "Cycle",
    "Question",
    "bounded_query",
    "open_source",
    "series_query",
]
