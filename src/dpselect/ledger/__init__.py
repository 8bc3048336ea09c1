"""A budget that survives: what a data set may cost, kept in a database and charged before anything is released.

>>> from dpselect.ledger import Ledger, Total
"""

from dpselect.ledger.amounts import Amounts
from dpselect.ledger.chain import Anchor, Check, LedgerEntry
from dpselect.ledger.filter import LedgerFilter, filter_on
from dpselect.ledger.records import Answered, Balance, Reservation
from dpselect.ledger.store import Ledger
from dpselect.ledger.total import Total
from dpselect.ledger.unit import PrivacyUnit

__all__ = [
    "Amounts",
    "Anchor",
    "Answered",
    "Balance",
    "Check",
    "Ledger",
    "LedgerEntry",
    "LedgerFilter",
    "PrivacyUnit",
    "Reservation",
    "Total",
    "filter_on",
]
