"""Everything dpselect raises, in one small tree.

::

    DPSelectError
    ├── InvalidParameter (ValueError)   a public parameter breaks a rule; the text names it, its value and the rule
    ├── InvalidData (ValueError)        a private value cannot be used; the text never repeats private values
    ├── BudgetExhausted                 the next question does not fit the budget; nothing was spent on it
    ├── StateRefused (ValueError)       a saved state is damaged, altered or of another version
    ├── LedgerError                     the ledger cannot be read or written, or is not what it was; nothing got out
    ├── SourceError                     a table, file or engine cannot be read
    │   └── NothingRead                 it could not even be opened; its charge is released
    └── NotPublic                       an operation that needs public data was given data not declared public

    DPSelectWarning (UserWarning)
    └── SensitivityClipped              the sensitivity was larger than the range and was cut to it

A refused call spends nothing and draws no noise.

A text names parameters ‹so›. ``str(error)`` shows the bare name; :meth:`DPSelectError.told` shows the caller's own word
for it, such as the option of a command line.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpselect.secrets import without_secrets


class DPSelectError(Exception):
    """Anything this package raises on purpose."""

    def __str__(self) -> str:
        return self.told(lambda parameter: parameter)

    def told(self, word: Callable[[str], str]) -> str:
        """The message with the caller's own word for each parameter it names.

        >>> SourceError("the times carry a zone; give ‹timezone›").told(lambda name: f"--{name}")
        'the times carry a zone; give --timezone'
        """
        start, *rest = super().__str__().split("‹")
        pieces = (piece.partition("›") for piece in rest)
        return start + "".join((word(name) if mark else f"‹{name}") + after for name, mark, after in pieces)


class InvalidParameter(DPSelectError, ValueError):
    """A public parameter breaks a rule; the message names the parameter, the value and the rule.

    Attributes
    ----------
    parameter, rule : str or None
        ``parameter`` must be ``rule``; None where a message is about several parameters at once.
    """

    def __init__(self, message: str, *, parameter: str | None = None, rule: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.rule = rule


def refuse(parameter: str, value: object, rule: str) -> InvalidParameter:
    """The error that says ``parameter must be rule; got value``; a value that is missing is not shown.

    >>> found = refuse("sigma", -1.0, "positive and finite")
    >>> str(found), found.parameter, found.rule
    ('sigma must be positive and finite; got -1.0', 'sigma', 'positive and finite')
    """
    got = "" if value is None else f"; got {_shown(value)}"
    return InvalidParameter(f"‹{parameter}› must be {rule}{got}", parameter=parameter, rule=rule)


def refuse_given(here: str, **values: object) -> None:
    """Parameters that mean nothing ``here`` are refused, not ignored.

    >>> refuse_given("rows of persons", monotone=None)
    >>> refuse_given("rows of persons", monotone=True)
    Traceback (most recent call last):
        ...
    dpselect.errors.InvalidParameter: monotone does not go with rows of persons; leave it out
    """
    for name, value in values.items():
        if value is not None:
            raise InvalidParameter(f"‹{name}› does not go with {here}; leave it out", parameter=name)


def _shown(value: object) -> str:
    try:
        text = str(value) if isinstance(value, Fraction) else repr(value[:100] if isinstance(value, str) else value)
    except Exception:  # a value may be anything, and so may what its repr does
        text = f"a {type(value).__name__}"
    text = without_secrets(text).replace("\n", " ")
    return text if len(text) <= 80 else text[:77] + "..."


class InvalidData(DPSelectError, ValueError):
    """A private value cannot be used (NaN, out of range); the message never repeats private values."""


class BudgetExhausted(DPSelectError):
    """The next question does not fit the budget. Nothing was spent on it."""

    def __init__(self, message: str, *, spent: float, budget: float, next_cost: float) -> None:
        super().__init__(message)
        self.spent = spent
        self.budget = budget
        self.next_cost = next_cost


class StateRefused(DPSelectError, ValueError):
    """A saved state is damaged, altered or of another version."""


class LedgerError(DPSelectError):
    """A ledger cannot be read or written, or is not what it was. Nothing was released that is not in it."""

    #: Whether the patience with its database is over.
    waited = False


class SourceError(DPSelectError):
    """A table, file or engine cannot be read; the message says what to change.

    Attributes
    ----------
    before_rows : bool
        Whether it is certain that no row had been read: the failure then depends on public facts alone, such as an
        address, a password, the right to read a table or the names of its columns.
    """

    def __init__(self, message: str, *, before_rows: bool = False) -> None:
        super().__init__(message)
        self.before_rows = before_rows


class NothingRead(SourceError):
    """A table could not even be opened: no row was read, and whether it could be does not depend on rows."""


class NotPublic(DPSelectError):
    """An operation that needs public data was given data not declared public."""


class DPSelectWarning(UserWarning):
    """Anything this package warns about."""


class SensitivityClipped(DPSelectWarning):
    """The sensitivity was larger than the range of the queries and was cut to it."""
