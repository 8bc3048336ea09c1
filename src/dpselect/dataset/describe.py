"""For the curator, before anything is spent: what a table holds, what of it can be read, and what looks wrong.

Everything here is exact and without noise: it is shown to the curator only and never goes into an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dpselect.dataset import rows
from dpselect.dataset.budget import Account, Budget
from dpselect.dataset.facts import Facts
from dpselect.dataset.guess import guess_columns
from dpselect.dataset.look import Look, Remark
from dpselect.dataset.scope import Scope
from dpselect.errors import DPSelectError
from dpselect.tables import CuratorReport
from dpselect.tables.curator import SENSITIVE
from dpselect.tables.passes import fetched, watched

#: Rows looked at to tell what a column may be.
_SAMPLE = 1000


@dataclass(frozen=True, kw_only=True, repr=False)
class Description:
    """What the curator is told about a table. Sensitive: exact counts, never to be published.

    Attributes
    ----------
    columns : dict
        Each column's kind, in a word.
    facts : dict
        The public facts that were given, and the columns and formats that were guessed.
    guessed : tuple of str
        Which of the facts were guessed.
    counts : dict
        Exact counts of rows.
    remarks : tuple of Remark
        What looks wrong, each with what to do.
    report : CuratorReport or None
        What a question under these facts would use, leave out or cut; None where cap, population or dates are missing.
    missing : tuple of str
        The facts without which nothing can be asked.
    """

    columns: dict[str, str]
    facts: dict[str, Any]
    guessed: tuple[str, ...]
    counts: dict[str, Any]
    remarks: tuple[Remark, ...]
    report: CuratorReport | None
    missing: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """The description as text, the warning first."""
        names = list(self.columns.items())
        listed = ", ".join(f"{name} ({kind})" for name, kind in names[:12])
        more = f", and {len(names) - 12:,} more" if len(names) > 12 else ""
        facts = [
            f"  {name} = {value}" + ("   (guessed: check it)" if name in self.guessed else "")
            for name, value in self.facts.items()
            if name != "source"
        ]
        counts = [
            f"  {name}: {value:,}" if isinstance(value, int) else f"  {name}: {value}"
            for name, value in self.counts.items()
        ]
        used = [] if self.report is None else ["A question under these facts:", *_used(self.report, self.facts)]
        return (SENSITIVE, f"Columns: {listed}{more}", "Facts:", *facts, "The table:", *counts, *used)

    def __str__(self) -> str:
        marked = [DPSelectError(remark.text) for remark in self.remarks]
        return "\n".join([*self.lines(), *(f"! {one}" for one in marked)])

    def __repr__(self) -> str:
        return f"<Description of {len(self.columns)} columns, {len(self.remarks)} remarks; sensitive>"


def _used(report: CuratorReport, facts: Mapping[str, Any]) -> Iterator[str]:
    """What of the rows a question would use, leave out or change; nothing is said of what does not happen."""
    persons = f", of {report.users:,} persons" if report.users else ""
    yield f"  uses {report.used:,} of {report.rows:,} {'cells' if facts.get('wide') else 'rows'}{persons}"
    gone = {
        "without a person": report.without_user,
        "without a time or category that can be read": report.without_candidate,
        "outside the dates or the list": report.outside_candidates,
        "without a reading": report.without_reading,
    }
    if any(gone.values()):
        yield "  leaves out " + ", ".join(f"{number:,} {why}" for why, number in gone.items() if number)
    if report.negative:
        yield f"  counts {report.negative:,} negative readings as 0"
    if report.duplicates:
        yield f"  meets {report.duplicates:,} rows more than one of a person at one time"
    if report.contributions_at_cap:
        yield f"  cuts {report.contributions_at_cap:,} of {report.contributions:,} times what one person counts for"
    if report.totals_cut:
        bounds = "the maximum allows" if "maximum" in facts else "the population and the cap allow"
        yield f"  finds {report.totals_cut:,} totals larger than {bounds}"


def describe(source: Any, facts: Mapping[str, Any], *, progress: Callable[[float], None] | None = None) -> Description:
    """Looks at a table under the facts that are known so far, and guesses columns and formats that are not.

    ``progress`` is told the share done, from 0 to 1.

    Examples
    --------
    >>> import pyarrow
    >>> rows = pyarrow.table({"meter": ["a", "b"], "day": ["31/01/2013", "01/02/2013"], "kwh": ["1,5", "2,5"]})
    >>> found = describe(rows, {"cap": 10, "population": 1})
    >>> found.facts["time_format"], found.facts["decimal"], found.guessed
    ('%d/%m/%Y', ',', ('user', 'time', 'value', 'time_format', 'decimal'))
    >>> print(found.remarks[0].text)
    more persons have rows than ‹population› says (1): values would be too large, ...
    """
    if unknown := facts.keys() - {one.name for one in fields(Facts)}:
        raise TypeError(f"describe() got an unexpected keyword argument {min(unknown)!r}")
    known = {name: value for name, value in facts.items() if value is not None}
    new: dict[str, Any] = {}
    table = rows.open_table(source, **{name: known.get(name) for name in ("backend", "table", "delimiter")})
    between = next((sign for sign in ";\t|" if sign in table.columns[0]), None)
    if len(table.columns) == 1 and between is not None and "delimiter" not in known:
        new["delimiter"] = known["delimiter"] = between
        table = rows.open_table(source, **{name: known.get(name) for name in ("backend", "table", "delimiter")})
    columns = {name: _kind(kind) for name, kind in zip(table.columns, table.schema().types, strict=True)}
    sample = _sample(table)
    guessed = {} if known.get("wide") else guess_columns(columns, sample)
    if "maximum" in known:
        guessed.pop("user", None)
    if "category" in known:
        guessed.pop("time", None)
    new |= {name: value for name, value in guessed.items() if name not in known}
    known |= new
    look = Look(source, table, known, sample)
    with watched(table, _part(progress, 0.0, 0.3)):
        counts = look.count()
    for name, value in look.learned.items():
        new[name] = known[name] = value
    report = None
    if not look.missing:
        try:
            report = _report(Facts(source, **known), look, _part(progress, 0.3, 1.0))
        except DPSelectError as failure:
            look.remark(failure.args[0])
    return Description(
        columns=columns,
        facts={"source": source, **known},
        guessed=tuple(new),
        counts=counts,
        remarks=tuple(look.remarks(counts, report, columns)),
        report=report,
        missing=tuple(look.missing),
    )


def _part(progress: Callable[[float], None] | None, begin: float, end: float) -> Callable[[float], None] | None:
    """Progress of a part of the work, told as that of the whole."""
    return None if progress is None else lambda share: progress(begin + (end - begin) * share)


def _kind(kind: Any) -> str:
    if kind.is_string():
        return "text"
    if kind.is_date():
        return "date"
    if kind.is_timestamp():
        return "time"
    return "number" if kind.is_numeric() else str(kind)


def _sample(table: Any) -> dict[str, Sequence[Any]]:
    few = list(table.columns[:200])
    found = fetched(table.select(*few).limit(_SAMPLE), doing="looking at the first rows").to_pydict()
    return {name: found.get(name, []) for name in table.columns}


def _report(facts: Facts, look: Look, progress: Callable[[float], None] | None) -> CuratorReport | None:
    """What a question under these facts would use, leave out or cut; over all days there are, where none are named."""
    if facts.start is None and facts.categories is None:
        if look.days is None or (look.days[1] - look.days[0]).days > 36_500:
            return None
        candidates = facts.candidates(start=look.days[0].isoformat(), end=look.days[1].isoformat())
    else:
        candidates = facts.candidates()
    scope = Scope(facts, candidates, Account(budget=Budget(None)))
    rows.check(scope)
    query = rows.read(scope, progress=_part(progress, 0.0, 0.4))
    if facts.start is not None or facts.categories is not None:
        look.silent = [place for place, total in enumerate(query.totals) if not total], query.labels
    with watched(look.table, _part(progress, 0.4, 1.0)):
        return query.curator_report
