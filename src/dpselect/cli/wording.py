"""The library's words in the words of the command line: options instead of arguments, numbers as they were typed."""

from __future__ import annotations

import re
from collections.abc import Collection
from fractions import Fraction

from dpselect.cli.numbers import shown

#: Arguments whose options are called otherwise.
_RENAMED = {"start": "--from", "end": "--to", "names": "--categories", "figures": "--figure", "shape": "--wide"}
#: Phrases that only make sense in a program, and what to type instead.
_PHRASES = (
    (re.compile(r"\bend must not come before start\b"), "--to must not come before --from"),
    (re.compile(r"\btimezone='([^']*)'"), r"--timezone \1"),
    (re.compile(r"\bshape='wide'"), "--wide"),
    (re.compile(r"\btable=(?!\w)"), "--table"),
    (re.compile(r"\bpublic=True(, or --public)?"), "--public"),
    (re.compile(r"\btime_format\b(=\S+)?"), "--time-format"),
    (re.compile(r"\bin timezone\b"), "in --timezone"),
    (re.compile(r"\bgive population or sensitivity\b"), "give --population or --sensitivity"),
    (re.compile(r"\bleft out when measure is count\b"), "left out with --measure count"),
    (re.compile(r"\bchange the backend\b"), "change --backend"),
    (re.compile(r"\buse DuckDB with a memory_limit, or Spark\b"), "use --backend spark, or a machine with more"),
    (re.compile(r"a question with a time column needs a Calendar of candidates"), "--time needs --from and --to"),
    (re.compile(r"a question with a category column needs Categories as candidates"), "--category needs --categories"),
    (re.compile(r"; got None$"), ""),
    (re.compile(r"; got '(-?[\d.]+)'$"), r"; got \1"),
)
_FRACTION = re.compile(r"\bFraction\((-?\d+), (\d+)\)")
_ARGUMENT = re.compile(r"^([a-z]+(?:_[a-z]+)*)(?= must )")


def in_options(text: str, *, options: Collection[str]) -> str:
    """A message of the library for somebody who typed the ``options``.

    >>> in_options("sensitivity must be zero or more; got Fraction(-1, 1)", options=["--sensitivity"])
    '--sensitivity must be zero or more; got -1'
    >>> in_options("times carry a time zone; give the calendar one, e.g. timezone='Europe/London'", options=[])
    'times carry a time zone; give the calendar one, e.g. --timezone Europe/London'
    """
    for phrase, typed in _PHRASES:
        text = phrase.sub(typed, text)
    text = _FRACTION.sub(lambda found: shown(Fraction(int(found[1]), int(found[2]))), text)

    def option(found: re.Match[str]) -> str:
        # An argument that this command has no option for (the number of candidates in a calendar) keeps its name.
        name = _RENAMED.get(found[1], f"--{found[1].replace('_', '-')}")
        return name if name in options else found[1]

    return _ARGUMENT.sub(option, text)
