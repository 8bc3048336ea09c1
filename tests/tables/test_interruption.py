"""A person who ends a pass over a table is told so, whatever the engine made of the signal."""

import pytest

from dpselect.errors import SourceError
from dpselect.tables.failures import Interrupted, engine_failures


def test_duckdb_tells_of_a_signal_in_an_error_of_its_own() -> None:
    with pytest.raises(Interrupted, match="interrupted while adding up"), engine_failures("adding up"):
        raise RuntimeError("Query interrupted")


def test_other_errors_are_no_interruption() -> None:
    with pytest.raises(SourceError, match="failed"), engine_failures("adding up"):
        raise RuntimeError("something else")
