"""In words: numbers and promises as a person would write them, and a whole report as plain or coloured text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from dpselect.rounding import at_most

if TYPE_CHECKING:
    from dpselect.planning.prediction import Prediction
    from dpselect.privacy.family import QueryFamily
    from dpselect.report.record import Report


def shown(number: Fraction) -> str:
    """An exact number as a person would write it.

    >>> shown(Fraction(1, 6946)), shown(Fraction(1, 10)), shown(Fraction(50))
    ('1/6946', '0.1', '50')
    """
    if number.denominator == 1:
        return str(number.numerator)
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    # Few digits and no endless decimal: written out; otherwise as the fraction it is.
    return repr(float(number)) if rest == 1 and number.denominator <= 10**12 else f"{number}"


def percent(share: float, digits: int = 3) -> str:
    """A share as a percentage.

    >>> percent(0.0123), percent(0.0), percent(0.698, 2)
    ('1.23%', '0%', '70%')
    """
    return f"{float(f'{100 * share:.{digits}g}'):g}%"


def often(share: float) -> str:
    """How often, to two digits, and never always where it is not.

    >>> often(0.698), often(0.9975), often(1.0)
    ('70% of the time', '99.8% of the time', '100% of the time')
    """
    return f"{percent(share, 2 if share < 0.995 else 3)} of the time"


def f1_in_words(found: Prediction) -> str:
    """How good answers about a line are expected to be, beside a guess: the same before, in a plan, and after."""
    share = _whole(found.share or 0.0)
    guess = f"a guess that looks at no data and names all is right {share} of the time"
    if found.precision is None or found.recall is None:
        return f"if {share} are above, F1 {found.score:.2f}; {guess}"
    return (
        f"if {share} are above, {_whole(found.precision)} of those named are right, and {_whole(found.recall)} "
        f"of those above are named; {guess}"
    )


def choice_in_words(
    hits: float,
    short: str,
    *,
    few: float,
    many: float,
    guess: float,
    guess_short: str,
    which: str = "the largest",
    side: str = "below",
) -> str:
    """How good a choice is expected to be, beside a guess: how often the best (also where the best stands out least
    and most), and how far off on average.

    >>> choice_in_words(0.97, "0.1 kWh", few=0.9, many=1.0, guess=0.0027, guess_short="1.1 kWh")
    'the largest 97% of the time (90 to 100%), on average 0.1 kWh below it; a guess that looks at no data: 0.27%, ...'
    """
    spread = f" ({100 * few:.0f} to {100 * many:.0f}%)" if many - few >= 0.01 else ""
    blind = f"a guess that looks at no data: {percent(guess, 2)}, {guess_short} {side}"
    return f"{which} {often(hits)}{spread}, on average {short} {side} it; {blind}"


def _whole(share: float) -> str:
    return f"{100 * share:.0f}%"


#: What the ± of a value means.
UNCUT = "each ± holds 95 times of 100; half of ε pays for names and half for values"
#: The same of values that never leave their range.
CUT = f"{UNCUT}, which are cut to their range"


def with_margin(value: float, within: float) -> str:
    """A value and its ±, to as many digits as the noise leaves; the ± is rounded up.

    >>> with_margin(12.3456, 0.2101), with_margin(812.3456, 35.0)
    ('12.35 ± 0.22', '812 ± 35')
    """
    digits = max(0, 1 - math.floor(math.log10(within))) if within > 0 else 6
    reach = Decimal(repr(float(within))).quantize(Decimal(1).scaleb(-digits), ROUND_CEILING)
    return f"{value:.{digits}f} ± {reach:f}"


def three_digits(number: float) -> str:
    """A number to three digits, written out.

    >>> three_digits(1100.4), three_digits(0.12345)
    ('1100', '0.123')
    """
    return f"{float(f'{number:.3g}'):g}"


def plural(word: str) -> str:
    """More than one of them.

    >>> plural("day"), plural("category"), plural("hour of day")
    ('days', 'categories', 'hours of day')
    """
    one, of, whole = word.partition(" of ")
    return (one[:-1] + "ies" if one.endswith("y") and one[-2] not in "aeiou" else one + "s") + of + whole


def with_article(word: str) -> str:
    """One of them.

    >>> with_article("day"), with_article("hour")
    ('a day', 'an hour')
    """
    return f"{'an' if word.startswith('hour') else 'a'} {word}"


def family_in_words(family: QueryFamily) -> str:
    """What the values of a family promise, in a few words.

    >>> from dpselect import QueryFamily
    >>> family_in_words(QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True))
    'values from 0 to 1; one person moves each by at most 0.001, all the same way'
    """
    lower, upper = (shown(Fraction(repr(end))) for end in (family.lower, family.upper))
    direction = ", all the same way" if family.monotone else ""
    moved = at_most(family.sensitivity, digits=6)
    return f"values from {lower} to {upper}; one person moves each by at most {moved}{direction}"


_WIDTH = 100


class _Line(NamedTuple):
    """One paragraph: what it says, how it looks, what stands before it, how far it is moved in."""

    text: str = ""
    style: str = ""
    before: tuple[str, str] = ("", "")
    indent: int = 2
    listed: tuple[str, ...] = ()


def _paragraphs(report: Report) -> Iterator[_Line]:
    from dpselect.report.record import NOT_PRIVATE  # brings NumPy, which help does without

    if report.noise == "reproducible":
        yield _Line(NOT_PRIVATE, "bold red", indent=0)
        yield _Line()
    for finding in report.findings:
        yield _Line(finding.question, indent=0)
        yield _Line(finding.answer, "bold green")
        if finding.listed:
            yield _Line(before=(f"{finding.listed_as}:", "dim"))
            yield _Line(listed=finding.listed, indent=4)
        for name, text in finding.details:
            yield _Line(text, before=(f"{name}: ", "dim"))
        yield _Line()
    yield _Line(report.guarantee.headline, "bold", before=("Guarantee: ", ""), indent=0)
    yield _Line(report.guarantee.sentences[0])
    if report.guarantee.weakness is not None:
        yield _Line(report.guarantee.weakness, "bold yellow")
    for note in report.notes:
        yield _Line(f"• {note}")
    if report.parameters:
        yield _Line()


def columns(texts: Sequence[str], *, within: int) -> str:
    """Short texts side by side, read line by line, as many to a line as it takes.

    >>> print(columns(["2013-01-02", "2013-01-12", "2013-01-13"], within=24))
    2013-01-02  2013-01-12
    2013-01-13
    """
    wide = max(map(len, texts))
    number = max(1, (within + 2) // (wide + 2))
    rows = [texts[start : start + number] for start in range(0, len(texts), number)]
    return "\n".join("  ".join(text.ljust(wide) for text in row).rstrip() for row in rows)


def report_text(report: Report) -> str:
    """The report as plain text, for ``print`` and for logs.

    >>> from dpselect.report.guarantee import Guarantee
    >>> from dpselect.report.record import Finding, Report
    >>> found = Finding(question="Which day?", answer="2013-01-20")
    >>> print(report_text(Report(title="Peak", findings=(found,), guarantee=Guarantee(epsilon=0.1))))
    Which day?
      2013-01-20
    ...
    """
    lines = []
    for line in _paragraphs(report):
        gap = " " * line.indent
        if line.listed:
            lines.append(textwrap.indent(columns(line.listed, within=_WIDTH - line.indent), gap))
            continue
        said = line.before[0] + line.text
        lines.append(textwrap.fill(said, _WIDTH, initial_indent=gap, subsequent_indent=gap) if said else "")
    widest = max((len(name) for name, _ in report.parameters), default=0)
    for name, text in report.parameters:
        first, rest = f"  {name:<{widest}}  ", " " * (widest + 4)
        lines.append(textwrap.fill(text, _WIDTH, initial_indent=first, subsequent_indent=rest))
    return "\n".join(lines)


def print_report(report: Report) -> None:
    """Writes the report to the terminal; markup in the user's words is shown as it is, never obeyed."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    screen = Console()
    for line in _paragraphs(report):
        if line.listed:
            shown_in = columns(line.listed, within=screen.width - line.indent)
            # A name longer than the line runs over its edge, in one piece.
            screen.print(Text(textwrap.indent(shown_in, " " * line.indent)), soft_wrap=True)
            continue
        words = Text.assemble(line.before, (line.text, line.style))
        screen.print(Padding(words, (0, 0, 0, line.indent), expand=False) if line.indent and words else words)
    if report.parameters:
        grid = Table.grid(padding=(0, 2))
        for name, text in report.parameters:
            grid.add_row(Text(name, style="dim"), Text(text))
        screen.print(Padding(grid, (0, 0, 0, 2), expand=False))
