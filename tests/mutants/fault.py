"""What a fault is: one piece of text made wrong, and the tests that must notice it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One line made wrong, and the tests that must see it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    #: One of the most telling, for ``--quick``.
    quick: bool = False
    #: Replaced together with the first piece: file, old, new.
    also: tuple[tuple[str, str, str], ...] = ()

    @property
    def replacements(self) -> tuple[tuple[str, str, str], ...]:
        """Every piece of text that is replaced: file, old, new."""
        return ((self.file, self.old, self.new), *self.also)


def fault(
    name: str,
    file: str,
    old: str,
    new: str,
    *tests: str,
    quick: bool = False,
    also: tuple[tuple[str, str, str], ...] = (),
) -> Fault:
    """Shorthand: files are those of the package."""
    more = tuple((f"src/dpselect/{other}", before, after) for other, before, after in also)
    return Fault(name, f"src/dpselect/{file}", old, new, tests, quick, more)
