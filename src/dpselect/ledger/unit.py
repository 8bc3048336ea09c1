"""Whose privacy a budget counts: one ledger adds up what is spent about the same persons, in the same sense."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from dpselect.errors import InvalidParameter, refuse
from dpselect.ledger.wording import written

_ADJACENCIES = ("add-remove", "replace", "declared")


@dataclass(frozen=True, kw_only=True)
class PrivacyUnit:
    """The persons a data set's budget is about.

    Parameters
    ----------
    user : str or None
        The column that says whose row it is; None where the curator vouches for what one person can change.
    adjacency : str
        What a neighbouring data set is: ``"add-remove"``, ``"replace"`` or ``"declared"``.
    wide : bool
        Whether each row is one person.

    Examples
    --------
    >>> meters = PrivacyUnit(user="meter", adjacency="add-remove")
    >>> PrivacyUnit.from_document(meters.document()) == meters
    True
    >>> meters.check(PrivacyUnit(user="kwh", adjacency="add-remove"))
    Traceback (most recent call last):
    ...
    dpselect.errors.InvalidParameter: the ledger of this data set counts what is spent about each 'meter', ...
    """

    user: str | None
    adjacency: str
    wide: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.user, str | None):
            raise refuse("user", self.user, "the name of a column, or None")
        if not isinstance(self.adjacency, str) or self.adjacency not in _ADJACENCIES:
            raise refuse("adjacency", self.adjacency, "one of " + ", ".join(_ADJACENCIES))
        if not isinstance(self.wide, bool):
            raise refuse("wide", self.wide, "True or False")

    def document(self) -> dict[str, Any]:
        """As an entry keeps it; of a column whose name looks like a place, a digest."""
        found = asdict(self)
        try:
            written("unit", found)
        except InvalidParameter:
            found["user"] = hashlib.sha256(str(self.user).encode()).hexdigest()
        return found

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """From what an entry keeps."""
        return cls(user=document["user"], adjacency=document["adjacency"], wide=document["wide"])

    def check(self, other: PrivacyUnit) -> None:
        """Refuse a question about other persons than these, and name the parameter that differs."""
        mine, theirs = self.document(), given_unit(other).document()
        for one in fields(self):
            if mine[one.name] != theirs[one.name]:
                who = "person for whom the curator vouches" if self.user is None else repr(self.user)
                raise InvalidParameter(
                    f"the ledger of this data set counts what is spent about each {who}, so ‹{one.name}› must stay "
                    f"{mine[one.name]!r}; describe another data set with a ledger of its own",
                    parameter=one.name,
                )


def given_unit(unit: object) -> PrivacyUnit:
    """Refuse what is no privacy unit."""
    if not isinstance(unit, PrivacyUnit):
        raise refuse("unit", unit, "a PrivacyUnit, such as PrivacyUnit(user='meter', adjacency='add-remove')")
    return unit
