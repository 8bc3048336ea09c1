"""Everything dpselect raises, in one small tree.

::

    DPSelectError
    ├── InvalidParameter (ValueError)   a public parameter breaks a rule; the text names it, its value and the rule
    ├── InvalidData (ValueError)        a private value cannot be used; the text never repeats private values
    ├── BudgetExhausted                 the next question does not fit the budget; nothing was spent on it
    ├── StateRefused (ValueError)       a saved state is damaged, altered or of another version
    ├── SourceError                     a table, file or engine cannot be read
    └── NotPublic                       an operation that needs public data was given data not declared public

    DPSelectWarning (UserWarning)
    └── SensitivityClipped              the sensitivity was larger than the range and was cut to it

A refused call spends nothing and draws no noise.
"""

from __future__ import annotations


class DPSelectError(Exception):
    """Anything this package raises on purpose."""


class InvalidParameter(DPSelectError, ValueError):
    """A public parameter breaks a rule; the message names the parameter, the value and the rule."""


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


class SourceError(DPSelectError):
    """A table, file or engine cannot be read; the message says what to change."""


class NotPublic(DPSelectError):
    """An operation that needs public data was given data not declared public."""


class DPSelectWarning(UserWarning):
    """Anything this package warns about."""


class SensitivityClipped(DPSelectWarning):
    """The sensitivity was larger than the range of the queries and was cut to it."""
