"""One pass over a table for the curator: counts, what they teach about formats, and what looks wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from dpselect.dataset.guess import time_formats
from dpselect.errors import DPSelectError
from dpselect.report.words import plural
from dpselect.rounding import exact_number
from dpselect.tables import Calendar, CuratorReport
from dpselect.tables.candidates import length_of
from dpselect.tables.csv_lines import first_unread
from dpselect.tables.instants import days_of, hours_of, with_moments
from dpselect.tables.passes import fetched
from dpselect.tables.readings import is_written, reading
from dpselect.tables.rows import check_columns
from dpselect.tables.whole_files import usual_delimiter

#: What to say of a fact without which nothing can be asked.
_NEEDED = {
    "user": "name the column that says whose row it is (for a series nobody is named in: ‹maximum› instead)",
    "value": "name the column with the reading (or count persons: ‹measure› count)",
    "cap": "the most one person counts for in a period; choose it from what is known publicly, not from the rows",
    "population": "an upper bound on the number of persons; choose it from what is known publicly, not from the rows",
    "maximum": "the largest value the series can have; choose it from what is known publicly, not from the rows",
}
#: A share of rows from which something is called most of them.
_MOST = 0.5
#: A share of contributions cut to the cap from which candidates begin to look alike.
_MANY = 0.2
#: From here on a public number is called far too large: a bound that surely holds may be a few times the truth.
_FAR = 5


@dataclass(frozen=True, kw_only=True)
class Remark:
    """Something that looks wrong, and the parameter that fixes it, marked ‹so› in the text."""

    text: str
    parameter: str | None = None


class Look:
    """One pass over the table, and what it says."""

    def __init__(self, source: Any, table: Any, facts: dict[str, Any], sample: Mapping[str, Sequence[Any]]) -> None:
        self.source, self.table, self.facts, self.sample = source, table, facts, sample
        self.learned: dict[str, Any] = {}
        self.said: list[Remark] = []
        needed = ["cap", "population"] if "maximum" not in facts else ["maximum"]
        if facts.get("measure") == "count":
            needed.remove("cap")
        if "maximum" not in facts and not facts.get("wide"):
            needed = ["user", *(["value"] if "cap" in needed else []), *needed]
        self.missing = [name for name in needed if name not in facts]
        self.formats: list[str | None] = []
        self.days: tuple[date, date] | None = None
        #: The candidates that come to nothing, of the dates that were named, and all of them.
        self.silent: tuple[list[int], tuple[str, ...]] = ([], ())

    def remark(self, text: str, parameter: str | None = None) -> None:
        """Notes something that looks wrong."""
        self.said.append(Remark(text=text, parameter=parameter))

    def count(self) -> dict[str, Any]:
        """Counts in one pass; learns the format of times and the sign before decimals from all rows."""
        user, time, value = (self.facts.get(name) for name in ("user", "time", "value"))
        here = set(self.table.columns)
        table, moment = with_moments(self.table, time) if time is not None and time in here else (self.table, None)
        measures: dict[str, Any] = {"rows": table.count()}
        if user in here:
            measures["persons"] = table[user].nunique()
        if time in here:
            measures |= self._times(table[time], moment)
        if value in here and not self.facts.get("wide"):
            measures |= self._readings(table[value])
        found = fetched(table.agg(**measures), doing="counting rows for the curator").to_pylist()[0]
        counted = {name: int(number or 0) for name, number in found.items() if not name.startswith(("first", "last"))}
        return self._learn(counted, found)

    def _times(self, column: Any, moment: Any) -> dict[str, Any]:
        calendar = Calendar("2000-01-01", "2000-01-01", timezone=self.facts.get("timezone"))
        kind = column.type()
        if not (kind.is_string() or kind.is_date() or kind.is_timestamp()):
            return {}
        if getattr(kind, "timezone", None) is not None and calendar.timezone is None:
            self.remark("times carry a zone; give ‹timezone›, e.g. Europe/London", "timezone")
            return {}
        given = self.facts.get("time_format")
        self.formats = (
            [given] if given or not kind.is_string() else time_formats(self.sample[column.get_name()]) or [None]
        )
        measures: dict[str, Any] = {}
        for number, form in enumerate(self.formats):
            days = days_of(column, calendar, form, moment)
            measures[f"time {number}"] = days.notnull().sum()
            measures[f"first {number}"], measures[f"last {number}"] = days.min(), days.max()
        hours = hours_of(column, calendar, self.formats[0], moment)
        measures["midnight"] = (hours % 24 == 0).sum()
        return measures

    def _readings(self, column: Any) -> dict[str, Any]:
        signs = [self.facts["decimal"]] if "decimal" in self.facts else [".", ","]
        written = is_written(column) if column.type().is_string() else column.notnull()
        measures: dict[str, Any] = {"written": written.sum()}
        for sign in signs if column.type().is_string() else signs[:1]:
            part = reading(column, decimal=sign)
            number = part.or_null()
            measures[f"reading {sign}"] = part.usable.sum()
            measures[f"negative {sign}"] = (number < 0).sum()
            if "cap" in self.facts:
                measures[f"above {sign}"] = (number > float(_exact(self.facts["cap"]))).sum()
        return measures

    def _learn(self, counted: dict[str, int], found: Mapping[str, Any]) -> dict[str, Any]:
        counts: dict[str, Any] = {"rows": counted["rows"]}
        if "persons" in counted:
            counts["persons"] = counted["persons"]
        if "time 0" in counted:
            best = max(range(len(self.formats)), key=lambda number: (counted[f"time {number}"], -number))
            equal = [
                form for number, form in enumerate(self.formats) if counted[f"time {number}"] == counted[f"time {best}"]
            ]
            if len(equal) > 1:
                self.remark(
                    f"day and month may stand in either order: every time reads as {equal[0]} and as {equal[1]}; say "
                    "which with ‹time_format›",
                    "time_format",
                )
            if self.formats[best] is not None and "time_format" not in self.facts:
                self.learned["time_format"] = self.formats[best]
            counts["times that can be read"] = counted[f"time {best}"]
            if found[f"first {best}"] is not None:
                self.days = _day(found[f"first {best}"]), _day(found[f"last {best}"])
                counts["first and last day"] = " to ".join(day.isoformat() for day in self.days)
            if "hour" not in self.facts:  # otherwise it stands in a column of its own
                counts["times at midnight"] = counted["midnight"]
        signs = [name.split()[1] for name in counted if name.startswith("reading ")]
        if signs:
            best_sign = max(signs, key=lambda sign: counted[f"reading {sign}"])
            if best_sign != "." and "decimal" not in self.facts:
                self.learned["decimal"] = best_sign
            counts["readings that are numbers"] = counted[f"reading {best_sign}"]
            counts["empty readings"] = counted["rows"] - counted["written"]
            counts["negative readings"] = counted[f"negative {best_sign}"]
            if f"above {best_sign}" in counted:
                counts["readings above the cap"] = counted[f"above {best_sign}"]
        return counts

    def remarks(
        self, counts: Mapping[str, Any], report: CuratorReport | None, columns: Mapping[str, str]
    ) -> list[Remark]:
        """What looks wrong, each with the parameter that fixes it."""
        rows, facts = counts["rows"], self.facts
        if not rows:
            self.remark("the table has no rows; check the path")
        for name in ("user", "time", "hour", "value", "category"):
            if name in facts and facts[name] not in columns:
                try:
                    check_columns(self.table, [facts[name]])
                except DPSelectError as failure:
                    self.remark(f"‹{name}›: {failure}", name)
        read = counts.get("times that can be read")
        if rows and read is not None and read < rows:
            share = "no" if not read else f"only {read:,} of {rows:,}"
            where = self._first("time", _reads_time(facts.get("time_format")))
            self.remark(
                f"{share} times can be read{where}; the others are left out: check ‹time› and ‹time_format›",
                "time_format",
            )
        asleep = bool(read) and counts.get("times at midnight") == read and "hour" not in facts
        if asleep and (length_of(facts.get("every", "day")) == "hour" or _hour_column(columns)):
            where = f" ({_hour_column(columns)!r} may hold it)" if _hour_column(columns) else ""
            self.remark(
                "every time falls on midnight, so hours cannot be told apart and all count as 00:00: name their column "
                f"with ‹hour›{where}, or ask per day",
                "hour",
            )
        numbers, empty = counts.get("readings that are numbers"), counts.get("empty readings", 0)
        if empty:
            self.remark(f"{empty:,} of {rows:,} readings are empty: they count nothing", "value")
        if numbers is not None and numbers < rows - empty:
            filled = rows - empty
            share = "no reading is a number" if not numbers else f"only {numbers:,} of {filled:,} readings are numbers"
            where = self._first("value", _reads_number(facts.get("decimal", ".")))
            self.remark(f"{share}{where}; the others are left out: check ‹value› and ‹decimal›", "value")
        if numbers and counts["negative readings"] == numbers:
            self.remark(
                "all readings are negative and would count as 0: check ‹value›, or turn their sign first", "value"
            )
        elif numbers and counts["negative readings"]:
            self.remark(f"negative readings count as 0: {counts['negative readings']:,} here", "value")
        if numbers and counts.get("readings above the cap", 0) > _MOST * numbers:
            self.remark(
                "most readings lie above ‹cap› and would count as it: choose a larger one, from public knowledge", "cap"
            )
        elif report is not None and report.contributions_at_cap > _MANY * report.contributions:
            share = f"{100 * report.contributions_at_cap / report.contributions:.0f}%"
            one = "category" if "categories" in facts else facts.get("every", "day").replace("-", " ")
            self.remark(
                f"{share} of the person-{plural(one)} (one person, one {one}) lie at or above ‹cap› and are cut to it, "
                f"so that {plural(one)} look alike: choose a larger one, from public knowledge, or name its period "
                "with ‹cap_every›",
                "cap",
            )
        if "population" in facts and counts.get("persons", 0) > int(facts["population"]):
            self.remark(
                f"more persons have rows than ‹population› says ({facts['population']}): values would be too large, "
                "and some mechanisms cut them; give a public bound that holds",
                "population",
            )
        elif report is not None and report.totals_cut and "maximum" in facts:
            self.remark(
                f"{report.totals_cut:,} totals are larger than ‹maximum› {facts['maximum']} allows, and are cut to it; "
                "give a public one that holds",
                "maximum",
            )
        elif report is not None and report.totals_cut:
            self.remark(
                f"{report.totals_cut:,} totals are larger than ‹population› and ‹cap› allow; give public bounds that "
                "hold",
                "population",
            )
        self._far_off(counts, report)
        if report is not None and not report.used:
            self.remark("no row lies between ‹start› and ‹end›, or none can be read: check both", "start")
        for name in self.missing:
            self.remark(f"‹{name}› is still needed: {_NEEDED[name]}", name)
        self._without_candidates()
        return self.said

    def _without_candidates(self) -> None:
        """What is compared may be named with each question; one of both must."""
        facts = self.facts
        if "categories" in facts or ("start" in facts and "end" in facts):
            return
        if "category" in facts:
            self.remark("‹categories› is still needed, here or with each question: the public list", "categories")
        else:
            self.remark(
                "‹start› and ‹end› are still needed, here or with each question: the first and the last day asked "
                "about, from public knowledge",
                "start",
            )

    def _far_off(self, counts: Mapping[str, Any], report: CuratorReport | None) -> None:
        """Public numbers far above what the rows come to, and dates of which they say nothing: no error, and costly."""
        persons, most = counts.get("persons", 0), int(self.facts.get("population", 0))
        if persons and "maximum" not in self.facts and most >= _FAR * persons:
            times = most // persons
            divided = (
                f": means come out {times:,} times too small" if self.facts.get("measure", "mean") == "mean" else ""
            )
            said = f"you say {most:,} persons, {persons:,} {'has' if persons == 1 else 'have'} rows"
            self.remark(f"{said}{divided}; if fewer are known publicly, give ‹population›", "population")
        if report is not None and report.cap_times_most >= _FAR:
            times, unit = report.cap_times_most, self.facts.get("unit")
            part = f"{float(_exact(self.facts['cap']) / times):.3g}" + (f" {unit}" if unit else "")
            self.remark(
                f"no reading comes near ‹cap›: 99 of 100 times a person counts for at most a {times:,}th of it; a cap "
                f"of about {part} means {times:,} times less noise, if public knowledge speaks for it",
                "cap",
            )
        silent, labels = self.silent
        if silent and len(silent) < len(labels):
            filled = sorted(set(range(len(labels))) - set(silent))
            said = f"{len(silent):,} of the {len(labels):,} candidates have no rows, or only 0"
            if "start" not in self.facts:
                self.remark(f"{said} (the first is {labels[silent[0]]}): check ‹categories›", "categories")
            elif filled[0] == 0 and filled[-1] == len(labels) - 1:
                self.remark(f"{said}: gaps within the dates, the first at {labels[silent[0]]}; they count as 0", "time")
            else:
                ends = f"the first that does is {labels[filled[0]]}, the last {labels[filled[-1]]}"
                self.remark(f"{said} ({ends}): check ‹start› and ‹end›", "end")

    def _first(self, name: str, reads: Callable[[str], bool]) -> str:
        """Where the first unreadable field of a CSV file stands."""
        places = [str(place) for place in (self.source if isinstance(self.source, list | tuple) else [self.source])]
        if not all(isinstance(place, str) and Path(place).is_file() and _is_csv(place) for place in places):
            return ""
        between = {"tab": "\t", "\\t": "\t"}.get(self.facts.get("delimiter", ""), self.facts.get("delimiter"))
        found = first_unread(places, between or usual_delimiter(places[0]), self.facts[name], reads)
        return "" if found is None else f" (the first that cannot is in {found})"


def _is_csv(place: str) -> bool:
    return place.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".txt"))


def _reads_time(form: str | None) -> Callable[[str], bool]:
    return lambda text: time_formats([text]) == [None] if form is None else _fits(text, form)


def _fits(text: str, form: str) -> bool:
    try:
        datetime.strptime(text.strip(), form.replace("%-", "%"))
    except ValueError:
        return False
    return True


def _reads_number(decimal: str) -> Callable[[str], bool]:
    pattern = re.compile(rf"\s*[+-]?(\d+({re.escape(decimal)}\d*)?|{re.escape(decimal)}\d+)([eE][+-]?\d{{1,2}})?\s*")
    return lambda text: text == "" or bool(pattern.fullmatch(text))


def _day(number: Any) -> date:
    return date(1970, 1, 1) + timedelta(days=int(number))


def _exact(value: Any) -> Any:
    return exact_number("cap", value)


def _hour_column(columns: Mapping[str, str]) -> str | None:
    return next((name for name in columns if name.lower() in ("hour", "hr", "stunde", "heure", "hora")), None)
