"""What one question is about: public facts and the candidates that are compared; and the account that pays for it."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from dpselect.dataset.budget import Account
from dpselect.dataset.facts import AMOUNTS, READING, Facts, whole_weeks_apart
from dpselect.dataset.identity import candidate_facts
from dpselect.errors import InvalidParameter
from dpselect.report.record import Entry
from dpselect.report.words import shown, with_article
from dpselect.rounding import at_most, exact_number
from dpselect.tables import BoundedQuery, Calendar, Candidates, Categories, Cycle, Question, series_query
from dpselect.tables.candidates import length_of, most_held

_GATHERED = {"sum": "sum", "mean": "mean", "max": "largest"}


@dataclass(frozen=True, repr=False)
class Scope:
    """The public facts and the candidates of one question, and the account that pays for its answer.

    Examples
    --------
    >>> from dpselect import Dataset
    >>> homes = Dataset("readings.csv", user="meter", time="at", value="kwh", cap=50, population=5566, unit="kWh")
    >>> scope = homes.scope(homes.candidates(start="2013-01-01", end="2013-12-31", every="month"))
    >>> scope.cap_in_words, scope.period, len(scope.public)
    ('1550 kWh: 31 times 50 kWh, that of a day', 'month', 12)
    """

    facts: Facts
    candidates: Candidates
    account: Account

    @property
    def period(self) -> str:
        """What one candidate is called."""
        found = self.candidates
        return "category" if isinstance(found, Categories) else found.every.replace("-", " ")

    @property
    def _length(self) -> str | None:
        """How long one candidate is; None for a category."""
        return None if isinstance(self.candidates, Categories) else length_of(self.candidates.every)

    @functools.cached_property
    def times_cap(self) -> int:
        """How many times the cap (or the maximum) one person can count for in a candidate.

        The engine cuts what one person counts for to so many caps, whatever the rows hold: Δ follows from the cut, and
        a number that is too large or too small costs accuracy, never privacy. Of a series the curator vouches for one
        period, and as many together can move by as many times that.
        """
        facts, candidates, length = self.facts, self.candidates, self._length
        if isinstance(candidates, Categories) or length is None:
            return 1
        held = most_held(candidates.every, facts.cap_length)
        if facts.is_series:
            if most_held(facts.cap_length, length) > 1:
                # What a person gives to one hour and takes from another does not show in the day.
                raise InvalidParameter(
                    f"what one person can change was stated for {with_article(facts.cap_length)} and says nothing "
                    f"about one {length}: give ‹maximum› (and ‹sensitivity› or ‹population›) for it, with "
                    f"‹cap_every› {length}",
                    parameter="every",
                )
            if facts.cap_length == "week":
                self._refuse_cut_weeks(candidates)
            return held  # a cycle's value is the mean over its occurrences
        if self.per_user != "sum":
            return 1  # the mean or the largest of some readings is no larger than one of them
        return held * max(candidates.occurrences) if isinstance(candidates, Cycle) else held

    def _refuse_cut_weeks(self, candidates: Calendar | Cycle) -> None:
        """What a person gives to one part of a week and takes from another does not show in the week."""
        if self._length == "month":
            raise InvalidParameter(
                "what one person can change was stated for a week, and a month cuts weeks: state ‹maximum› (and "
                "‹sensitivity› or ‹population›) for a day or a month, with ‹cap_every›",
                parameter="every",
            )
        first = self.facts.start
        if first is not None and not whole_weeks_apart(first, candidates.start):
            raise InvalidParameter(
                f"what one person can change was stated for weeks counted from {first}: ‹start› must be a whole "
                "number of weeks from it",
                parameter="start",
            )

    @property
    def parts_of_cap(self) -> int:
        """How many candidates the period of the cap holds: 24 hours where it was stated for a day; 1 if no longer."""
        shorter = self._length if self.facts.cap is not None else None
        return 1 if shorter is None else most_held(self.facts.cap_length, shorter)

    @property
    def cap_in_words(self) -> str:
        """The cap (or the maximum) of one candidate, and how it comes about."""
        facts, times = self.facts, self.times_cap
        stated = _exact(facts.maximum if facts.is_series else facts.cap)
        whole = facts.with_unit(shown(times * stated))
        if times > 1:
            one = facts.with_unit(shown(stated))
            return f"{whole}: {times:,} times {one}, that of {with_article(facts.cap_length)}"
        return whole if self.parts_of_cap == 1 else f"{whole}, that of a whole {facts.cap_length}"

    @property
    def long_cap(self) -> str | None:
        """What to say of a cap that was stated for a longer period than one candidate: it holds, and costs accuracy."""
        facts, parts = self.facts, self.parts_of_cap
        if parts == 1:
            return None
        stated = _exact(facts.cap)
        # One may well hold a few times an equal part.
        such = f"{float(stated) * 2.4 / parts:.2g}"
        return (
            f"the cap of {facts.with_unit(shown(stated))} is for {with_article(facts.cap_length)}, and one "
            f"{self._length} takes it whole, with up to {parts} times the noise needed; for one {self._length} give "
            f"such as ‹cap› {such} ‹cap_every› {self._length}"
        )

    @property
    def needs_hours(self) -> bool:
        """Whether hours are told apart, by the time alone."""
        return self.facts.hour is None and self._length == "hour"

    @property
    def cautions(self) -> tuple[str, ...]:
        """What to keep in mind of every answer, whatever the rows hold."""
        return ("Times without an hour count as 00:00.",) if self.needs_hours else ()

    @property
    def per_user(self) -> Literal["sum", "mean", "max"]:
        """How one person's readings in a candidate become one number."""
        return self.facts.per_user or ("mean" if isinstance(self.candidates, Cycle) else "sum")

    @functools.cached_property
    def question(self) -> Question:
        """The question to rows of persons."""
        facts = self.facts
        optional: dict[str, Any] = {} if facts.grid is None else {"grid": facts.grid}
        return Question(
            user=facts.user or "",
            population=facts.population or 0,
            time=facts.time,
            category=facts.category,
            value=facts.value,
            measure=facts.measure,
            per_user=self.per_user,
            cap=None if facts.cap is None else self.times_cap * _exact(facts.cap),
            adjacency=facts.adjacency,
            shape="wide" if facts.wide else "long",
            time_format=facts.whole_format,
            duplicates=facts.duplicates,
            decimal=facts.decimal,
            **optional,
        )

    @functools.cached_property
    def public(self) -> BoundedQuery:
        """The answer's labels, family and unit, from an empty table: no data is opened."""
        if self.facts.is_series:
            import pyarrow

            nothing = pyarrow.array([], type=pyarrow.string())
            return self.series(pyarrow.table({self.facts.place: nothing, self.facts.value: nothing}))
        return BoundedQuery(
            labels=self.candidates.labels,
            family=self.question.family,
            totals=(0,) * len(self.candidates),
            step=self.question.step,
            natural_unit=self.question.natural_unit,
        )

    def series(self, source: Any) -> BoundedQuery:
        """The queries of a series already added up."""
        facts, times = self.facts, self.times_cap
        return series_query(
            source,
            time=facts.place,
            value=facts.value or "",
            candidates=self.candidates,
            maximum=times * _exact(facts.maximum),
            population=facts.population,
            sensitivity=None if facts.sensitivity is None else times * _exact(facts.sensitivity),
            monotone=facts.monotone,
            time_format=facts.whole_format,
            decimal=facts.decimal,
        )

    @property
    def measured(self) -> str:
        """What is compared, in words."""
        facts = self.facts
        if facts.is_series:
            return str(facts.value)
        if facts.measure == "count":
            return "the number of persons with a reading"
        if facts.measure == "mean" and self.per_user == "sum" and self.period in ("week", "month"):
            return (
                f"the {self.period}'s total of {self._reading_name} per person (each counted up to {self._whole_cap})"
            )
        return self._added_up

    @property
    def _added_up(self) -> str:
        """What is compared of rows of persons, whatever the period."""
        reading, cap = self._reading_name, self._whole_cap
        return f"the {self.facts.measure} of {reading} over the population (each person counted up to {cap})"

    @property
    def _reading_name(self) -> str:
        return self.facts.value or "the reading"

    @property
    def _whole_cap(self) -> str:
        cap = self.facts.cap
        return "" if cap is None else self.facts.with_unit(shown(self.times_cap * _exact(cap)))

    def reading_digest(self) -> str:
        """A digest of every public fact that decides what the rows mean and whom the promise is about.

        A question to the same file under other facts is another question; what is typed as it is supposed anyway makes
        no other. A digest, since a fact may look like a place.
        """
        facts = self.facts
        kept = {name: str(getattr(facts, name)) for name in READING}
        kept |= {name: shown(_exact(given)) for name in AMOUNTS if (given := getattr(facts, name)) is not None}
        if not facts.is_series:
            kept |= {"per_user": self.per_user, "grid": str(self.question.grid)}
        if facts.delimiter in (None, "tab", "\\t"):
            kept["delimiter"] = "\t" if facts.delimiter or facts.name.endswith(".tsv") else ","
        return hashlib.sha256(json.dumps([facts.name, kept], sort_keys=True).encode()).hexdigest()

    def identity(self) -> dict[str, Any]:
        """What identifies the scope of a question in a ledger: the rows, how they are read, and the candidates.

        Only what was stated: a number that is computed from it may change in its last digit from version to version.
        """
        return {
            "data": self.facts.name,
            "reading": self.reading_digest(),
            "candidates": candidate_facts(self.candidates),
            "query_unit": shown(self.public.natural_unit),
        }

    def to_dict(self) -> dict[str, Any]:
        """Which rows and which candidates a question is about, as plain values for a record."""
        facts, candidates = self.facts, self.candidates
        if isinstance(candidates, Categories):
            return {"data": facts.name, "category": facts.category, "unit": facts.unit}
        first, last = (str(moment) for moment in (candidates.start, candidates.end))
        return {"data": facts.name, "from": first, "to": last, "every": candidates.every, "unit": facts.unit}

    def parameters(self) -> tuple[Entry, ...]:
        """The public parameters, for a report."""
        facts, public = self.facts, self.public
        entries = [("Data", facts.name), ("Candidates", f"{len(self.candidates):,}, {self._in_words()}")]
        if facts.population is not None:
            entries.append(("Population", f"at most {facts.population:,} persons (public)"))
        if facts.cap is not None:
            entries.append(("Cap per person", self.cap_in_words))
        if facts.maximum is not None:
            entries.append(("Maximum", f"{self.cap_in_words} (public)"))
        moved = facts.with_unit(at_most(public.family.sensitivity * float(public.natural_unit)))
        way = ", all of them up or all of them down" if public.family.monotone else ""
        return (*entries, ("One person", f"changes each value by at most {moved}{way}"))

    def _in_words(self) -> str:
        """The candidates in a few words."""
        candidates = self.candidates
        if isinstance(candidates, Categories):
            return "a public list of categories"
        if isinstance(candidates, Calendar):
            return f"each {candidates.every} from {candidates.labels[0]} to {candidates.labels[-1]}"
        days = candidates.calendar.labels
        over = f"each {self.period} over {days[0]} to {days[-1]}"
        if self.facts.is_series:
            return f"{over}, by the mean of all its values (a missing one counts as 0)"
        return f"{over}, by each person's {_GATHERED[self.per_user]} of the readings there are"


def _exact(value: Any) -> Fraction:
    return exact_number("number", value)
