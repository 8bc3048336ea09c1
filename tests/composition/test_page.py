"""The page for people runs."""

from __future__ import annotations

import doctest
from pathlib import Path


def test_the_examples_on_the_page_run() -> None:
    page = Path(__file__).parents[2] / "docs" / "composition.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert tried > 15
    assert failed == 0
