"""What the columns of a table may be, from their names and a few rows: proposals to the curator, never used unseen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

#: Parts of names that speak for a kind of column, the strongest first.
_NAMES = {
    "user": (
        "meter",
        "user",
        "customer",
        "person",
        "patient",
        "household",
        "client",
        "member",
        "device",
        "lclid",
        "id",
    ),
    "time": ("timestamp", "datetime", "date", "dteday", "time", "when", "day", "month", "at"),
    "value": ("kwh", "value", "reading", "amount", "consumption", "energy", "usage", "euro", "price", "cnt", "count"),
    "hour": ("hour", "hr"),
}
_DATES = ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y", "%Y{0}%m{0}%d")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")
#: A table with so many columns named after days has one column per period.
_WIDE = 7


def guess_columns(kinds: Mapping[str, str], sample: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """The columns that look like person, time and reading; those that do not look like any are left out.

    Parameters
    ----------
    kinds : mapping
        Each column's type, in words.
    sample : mapping
        Some values of each column.

    Examples
    --------
    >>> kinds = dict.fromkeys(["LCLid", "day", "energy_sum"], "text")
    >>> guess_columns(kinds, {"LCLid": ["MAC2"], "day": ["2013-01-01"], "energy_sum": ["7.1"]})
    {'user': 'LCLid', 'time': 'day', 'value': 'energy_sum'}
    """
    if sum(_is_time(name) for name in kinds) >= _WIDE:
        person = _best("user", [name for name in kinds if not _is_time(name)])
        return {"wide": True} | ({"user": person} if person else {})
    times = [name for name in kinds if kinds[name] in ("date", "time") or _most(sample[name], _is_time)]
    numbers = [name for name in kinds if kinds[name] == "number" or _most(sample[name], _is_number)]
    found: dict[str, Any] = {}
    if person := _best("user", [name for name in kinds if name not in times]):
        found["user"] = person
    if when := _best("time", times) or (times[0] if times else None):
        found["time"] = when
    rest = [name for name in numbers if name not in found.values() and name not in times]
    hour = _best("hour", [name for name in rest if all(_is_hour(value) for value in sample[name])])
    if hour and when and all(str(value).strip()[10:] == "" for value in sample[when] if value is not None):
        found["hour"] = hour
        rest.remove(hour)
    if reading := _best("value", rest) or (rest[-1] if rest else None):
        found["value"] = reading
    return found


def time_formats(values: Sequence[Any]) -> list[str | None]:
    """The formats in which most of some texts can be read, several where they read equally many; None is ISO 8601.

    >>> time_formats(["31/01/2013", "1/02/2013"]), time_formats(["2013-01-31", "?"])
    (['%-d/%-m/%Y'], [None])
    >>> time_formats(["01/02/2013 1:30 PM"])
    ['%d/%m/%Y %-I:%M %p', '%m/%d/%Y %-I:%M %p']
    """
    texts = [str(value).strip() for value in values if value not in (None, "")]
    plain = [text for text in texts if _reads(text, None)]
    if len(plain) == len(texts):
        return [None] if texts else []
    marks = sorted({mark for text in texts[:20] for mark in re.findall(r"(?<=\d)[/.-](?=\d)", text[:10])}) or [""]
    forms = [one.format(mark) + clock for one in _DATES for mark in marks for clock in _CLOCKS]
    read = {form: [text for text in texts if _reads(text, form)] for form in forms}
    most = max(len(plain), *map(len, read.values()))
    if not most or len(plain) == most:
        return [None] if most else []
    return [_digits(form, fitting) for form, fitting in read.items() if len(fitting) == most]


def _reads(text: str, form: str | None) -> bool:
    try:
        if form is None:
            datetime.fromisoformat(text)
        else:
            datetime.strptime(text, form)
    except ValueError:
        return False
    # Python also reads 20130131 and 2013-W05 as ISO; tables do not.
    return form is not None or (text[4:5] == "-" and text[7:8] == "-")


def _digits(form: str, texts: Sequence[str]) -> str:
    """The format with %-d and the like where some text has one digit."""
    fields = {"%d": r"\d{2}", "%m": r"\d{2}", "%H": r"\d{2}", "%I": r"\d{2}"}
    pattern = re.escape(form).replace("%Y", r"\d{4}").replace("%M", r"\d{2}").replace("%S", r"\d{2}")
    pattern = pattern.replace("%p", "[AaPp][Mm]")

    def matches(loose: str) -> bool:
        whole = pattern
        for field, digits in fields.items():
            whole = whole.replace(field, r"\d{1,2}" if field != loose else digits)
        return all(re.fullmatch(whole, text) for text in texts)

    for group in (("%d", "%m"), ("%H", "%I")):
        # Where days have one digit, months have one, too, be it in other rows.
        if any(field in form and not matches(field) for field in group):
            for field in group:
                form = form.replace(field, f"%-{field[1]}")
    return form


def _best(kind: str, names: Sequence[str]) -> str | None:
    for word in _NAMES[kind]:
        # A short word must stand alone: "id" is in "humidity".
        for name in names:
            parts = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
            if word in parts or (len(word) > 3 and word in name.lower()):
                return name
    return None


def _most(values: Sequence[Any], fits: Any) -> bool:
    filled = [value for value in values if value not in (None, "")]
    return bool(filled) and 2 * sum(map(fits, filled)) >= len(filled)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or bool(_NUMBER.fullmatch(str(value)))


def _is_hour(value: Any) -> bool:
    return bool(re.fullmatch(r"\s*([01]?\d|2[0-3])(:\d\d){0,2}\s*", str(value)))


def _is_time(value: Any) -> bool:
    text = str(value).strip()
    return bool(re.match(r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})(\D|$)", text))
