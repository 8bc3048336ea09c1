"""The page people read says what the code does."""

from pathlib import Path

from dpselect.planning.ways import TITLES

PAGE = Path(__file__).parents[2] / "docs" / "planning.md"


def test_the_page_names_every_contender():
    text = PAGE.read_text(encoding="utf-8")
    for key in TITLES:
        assert key in text or f"`-{key.split('-', 1)[1]}`" in text or (key.endswith("-clipped") and "…-clipped" in text)
