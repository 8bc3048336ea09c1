"""The page people read says what the code does."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "mechanisms.md"


def test_every_example_on_the_page_runs() -> None:
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags, encoding="utf-8")
    assert found.attempted > 15
    assert found.failed == 0
