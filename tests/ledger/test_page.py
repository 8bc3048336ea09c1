"""The page says what the code does: its story runs as a test (docs/ledger.md); its figures stand here."""

from __future__ import annotations

from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")


def test_the_page_names_the_patience_and_the_units() -> None:
    from dpselect.ledger.amounts import PER_DELTA, PER_EPSILON
    from dpselect.ledger.database import PATIENCE

    assert f"{PATIENCE:g} s" in PAGE
    assert (PER_EPSILON, PER_DELTA) == (10**15, 10**18)
    assert "10⁻¹⁵ (δ: 10⁻¹⁸)" in PAGE
