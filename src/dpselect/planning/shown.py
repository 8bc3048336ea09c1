"""Budgets in a sentence: few digits, rounded up, so that what is read is never less than what is meant."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal


def shown(budget: float, *, digits: int = 3) -> str:
    """ε or δ in a few digits, rounded up.

    >>> shown(0.01205), shown(1 / 6946), shown(0.1), shown(3.0), shown(0.999, digits=2)
    ('0.0121', '0.000144', '0.1', '3', '1')
    """
    # repr is the shortest decimal that reads back as the same double: 0.1 stays 0.1.
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).plus(Decimal(repr(float(budget))))):g}"
