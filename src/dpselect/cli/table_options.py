"""Options of the commands that read a table: where it is, what its columns mean, which periods are candidates."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

import typer

from dpselect.cli.numbers import read_count, read_number

_COLUMNS = "What the columns mean"
_CANDIDATES = "The public candidates"
_PERSON = "What one person can change"
_SERIES = "A series already added up over persons"

Every: TypeAlias = Literal["hour", "day", "week", "month"]

DATA_HELP = (
    "A CSV or Parquet file, a pattern such as 'readings/*.parquet', or a database URL (duckdb://, sqlite://, "
    "postgres://) with --table."
)
TableName: TypeAlias = Annotated[str | None, typer.Option("--table", help="The table, for a database URL.")]
Backend: TypeAlias = Annotated[
    str, typer.Option("--backend", help="The engine for files: duckdb, polars, spark, or another of Ibis.")
]
Delimiter: TypeAlias = Annotated[
    str | None,
    typer.Option("--delimiter", help="Between the fields of a CSV file: ';' or tab; a comma if left out."),
]
ShowSensitive: TypeAlias = Annotated[
    bool,
    typer.Option("--show-sensitive", help="Exact counts of rows left out or cut, on stderr: for the curator only."),
]

User: TypeAlias = Annotated[
    str | None, typer.Option("--user", help="Column that says whose row it is.", rich_help_panel=_COLUMNS)
]
Time: TypeAlias = Annotated[str | None, typer.Option("--time", help="Column with the time.", rich_help_panel=_COLUMNS)]
Value: TypeAlias = Annotated[
    str | None, typer.Option("--value", help="Column with the reading.", rich_help_panel=_COLUMNS)
]
Category: TypeAlias = Annotated[
    str | None,
    typer.Option("--category", help="Column with the category, instead of a time.", rich_help_panel=_COLUMNS),
]
Wide: TypeAlias = Annotated[
    bool,
    typer.Option("--wide", help="One row per person, one column per period or category.", rich_help_panel=_COLUMNS),
]
TimeFormat: TypeAlias = Annotated[
    str | None,
    typer.Option("--time-format", help="Such as '%d/%m/%Y %H:%M'; ISO 8601 if left out.", rich_help_panel=_COLUMNS),
]
Duplicates: TypeAlias = Annotated[
    Literal["keep", "largest"],
    typer.Option(
        "--duplicates", help="Rows of one person at one time: all count, or the largest.", rich_help_panel=_COLUMNS
    ),
]

From: TypeAlias = Annotated[
    str | None, typer.Option("--from", help="First period, e.g. 2013-01-01.", rich_help_panel=_CANDIDATES)
]
To: TypeAlias = Annotated[str | None, typer.Option("--to", help="Last period, included.", rich_help_panel=_CANDIDATES)]
EveryOption: TypeAlias = Annotated[
    Every, typer.Option("--every", help="How long a period is.", rich_help_panel=_CANDIDATES)
]
Timezone: TypeAlias = Annotated[
    str | None,
    typer.Option("--timezone", help="Zone of the periods, e.g. Europe/London.", rich_help_panel=_CANDIDATES),
]
CategoryNames: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--categories",
        metavar="A,B,…",
        help="The public list, or @FILE with one name per line.",
        rich_help_panel=_CANDIDATES,
    ),
]

Measure: TypeAlias = Annotated[
    Literal["mean", "sum", "count"],
    typer.Option("--measure", help="What is compared, over all persons.", rich_help_panel=_PERSON),
]
PerUser: TypeAlias = Annotated[
    Literal["sum", "mean", "max"],
    typer.Option("--per-user", help="One person's readings in a period become one number.", rich_help_panel=_PERSON),
]
Cap: TypeAlias = Annotated[
    Fraction | None,
    typer.Option(
        "--cap",
        parser=read_number,
        metavar="NUMBER",
        help="Most that one person counts for in a period.",
        rich_help_panel=_PERSON,
    ),
]
Population: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--population",
        parser=read_count,
        metavar="N",
        help="Public upper bound on the number of persons.",
        rich_help_panel=_PERSON,
    ),
]
Adjacency: TypeAlias = Annotated[
    Literal["add-remove", "replace"],
    typer.Option("--adjacency", help="What a neighbouring dataset is.", rich_help_panel=_PERSON),
]
Grid: TypeAlias = Annotated[
    int | None,
    typer.Option("--grid", parser=read_count, metavar="STEPS", help="Steps in the cap.", rich_help_panel=_PERSON),
]

Maximum: TypeAlias = Annotated[
    Fraction | None,
    typer.Option(
        "--maximum",
        parser=read_number,
        metavar="NUMBER",
        help="Public maximum of the series; instead of --user and --cap.",
        rich_help_panel=_SERIES,
    ),
]
SeriesSensitivity: TypeAlias = Annotated[
    Fraction | None,
    typer.Option(
        "--sensitivity",
        parser=read_number,
        metavar="NUMBER",
        help="You vouch: no person moves a value by more than this (or give --population: maximum/N).",
        rich_help_panel=_SERIES,
    ),
]
SeriesMonotone: TypeAlias = Annotated[
    bool,
    typer.Option("--monotone", help="You vouch: adding a person never lowers a value.", rich_help_panel=_SERIES),
]
