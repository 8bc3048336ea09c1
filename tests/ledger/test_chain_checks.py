"""Chains whose digests all match and that still cannot be: whoever writes one anew must also keep to the rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpselect.ledger import LedgerEntry, Total
from dpselect.ledger.amounts import NOTHING, Amounts
from dpselect.ledger.chain import START, check_chain
from dpselect.ledger.wording import written

TOTAL = Total.pure(1.0)
HALF = Amounts(epsilon=TOTAL.amounts.epsilon // 2)


def sealed(*entries: tuple[str, int | None, Amounts, Amounts], previous: str | None = None) -> list[LedgerEntry]:
    """A chain of (kind, reservation, amounts, sums), each with its digest; ``previous`` in place of the last link."""
    body = written("total", {"dataset": "homes", "total": TOTAL.document()})
    first = LedgerEntry(number=1, kind="create", who="eve", body=body, amounts=TOTAL.amounts)
    chain = [first.after(START, NOTHING, "homes")]
    for kind, reservation, amounts, sums in entries:
        number, key = len(chain) + 1, "0" * 64 if kind == "reserve" else None
        entry = LedgerEntry(
            number=number, kind=kind, who="eve", body="{}", reservation=reservation, key=key, amounts=amounts
        )
        last = previous is not None and number == len(entries) + 1
        chain.append(entry.after(previous if last and previous else chain[-1].digest, sums, "homes"))
    return chain


def problems(chain: list[LedgerEntry]) -> str:
    return "; ".join(check_chain(chain, "homes").problems)


def test_a_chain_that_keeps_to_the_rules_holds() -> None:
    assert problems(sealed(("reserve", 2, HALF, HALF), ("settle", 2, HALF, HALF))) == ""


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: sealed(("reserve", 2, HALF, HALF), previous="f" * 64), "does not follow the entry before it"),
        (lambda: sealed(("reserve", 2, HALF, NOTHING)), "its sums are not those of the entries"),
        (
            lambda: sealed(("reserve", 2, HALF + HALF + HALF, HALF + HALF + HALF)),
            "more is charged than the total allows",
        ),
        (lambda: sealed(("reserve", 2, HALF, HALF), ("settle", 2, HALF + HALF, HALF + HALF)), "settles more than was"),
        (
            lambda: sealed(("reserve", 2, HALF, HALF), ("settle", 2, NOTHING - HALF, NOTHING - HALF)),
            "settles more than was",
        ),
        (
            lambda: sealed(("reserve", 2, NOTHING - HALF, NOTHING - HALF)),
            "is no reservation that could be made",
        ),
        (
            lambda: sealed(
                ("reserve", 2, HALF, HALF), ("settle", 2, NOTHING, NOTHING), ("settle", 2, NOTHING, NOTHING - HALF)
            ),
            "settled before",
        ),
    ],
    ids=["broken link", "sums", "beyond the total", "dearer end", "negative end", "negative", "settled twice"],
)
def test_a_chain_that_breaks_a_rule_is_found(make: Callable[[], list[LedgerEntry]], found: str) -> None:
    assert found in problems(make())
