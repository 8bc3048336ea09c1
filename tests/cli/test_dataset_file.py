"""A data-set file in place of ten options; options count more than the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FACTS = 'user = "meter"\ntime = "at"\nvalue = "kwh"\ncap = 10\npopulation = 20\nstart = 2013-01-01\nend = 2013-01-31\n'


@pytest.fixture
def homes(readings: Path) -> Path:
    place = readings.parent / "homes.toml"
    place.write_text('rows = "readings.csv"\nunit = "kWh"\n' + FACTS)
    return place


def test_peak_and_watch_take_a_data_set_file(dpselect: Callable[..., Any], homes: Path) -> None:
    assert dpselect("peak", homes, "--epsilon", 2000, "--json").json["answer"] == "2013-01-20"
    ran = dpselect("watch", homes, "--threshold", 5, "--budget", 500, "--expect", 3)
    assert "3 of 31 days" in ran.out
    assert "kWh" in dpselect("peak", homes, "--epsilon", 2000).out


def test_options_count_more_than_the_file(dpselect: Callable[..., Any], homes: Path) -> None:
    asked = ("peak", homes, "--epsilon", 2000, "--json")
    assert dpselect(*asked, "--to", "2013-01-19", "--from", "2013-01-02").json["candidates"] == 18
    assert dpselect(*asked, "--every", "week").json["candidates"] == 5
    assert dpselect(*asked, "--measure", "sum").json["query_unit"] == 1
    assert "no column 'watts'" in dpselect(*asked, "--value", "watts").err


def test_a_slip_in_the_file_is_one_line_and_costs_nothing(dpselect: Callable[..., Any], homes: Path) -> None:
    homes.write_text(homes.read_text().replace("cap", "capp"))
    ran = dpselect("peak", homes, "--epsilon", 1)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "did you mean 'cap'?" in ran.err
    assert "no data-set file" in dpselect("peak", homes.parent / "other.toml", "--epsilon", 1).err


def test_several_files_need_no_quotes(dpselect: Callable[..., Any], readings: Path) -> None:
    header, *lines = readings.read_text().splitlines()
    half = len(lines) // 2
    parts = []
    for number, part in enumerate((lines[:half], lines[half:])):
        parts.append(readings.parent / f"part-{number}.csv")
        parts[-1].write_text("\n".join([header, *part]) + "\n")
    options = ("--user", "meter", "--time", "at", "--value", "kwh", "--cap", 10, "--population", 20)
    asked = (*options, "--from", "2013-01-01", "--to", "2013-01-31", "--epsilon", 2000, "--json", "--seed", 1)
    named, whole = dpselect("peak", *parts, *asked).json, dpselect("peak", readings, *asked).json
    assert named == whole | {"data": "part-0.csv and 1 more"}


def test_another_ledger_than_the_file_names_is_warned_of(dpselect: Callable[..., Any], homes: Path) -> None:
    own, other = homes.parent / "homes.ledger", homes.parent / "other.ledger"
    for place in (own, other):
        assert dpselect("ledger", "create", place, "--dataset", "homes", "--total", 5000).code == 0
    homes.write_text(homes.read_text() + 'ledger = "homes.ledger"\n')
    asked = ("peak", homes, "--epsilon", 2000, "--mechanism", "laplace")
    told = "warning: the data-set file names the ledger 'homes.ledger', and another one is charged"
    assert told in dpselect(*asked, "--ledger", other).err
    assert told not in dpselect(*asked, "--ledger", homes.parent / ".." / homes.parent.name / "homes.ledger").err
    assert told not in dpselect(*asked).err


def test_another_data_set_in_the_ledger_gives_no_fresh_budget(dpselect: Callable[..., Any], homes: Path) -> None:
    """Not even one that is called like the file with the rows."""
    ledger = homes.parent / "homes.ledger"
    assert dpselect("ledger", "create", ledger, "--dataset", "homes", "--total", 3000).code == 0
    homes.write_text(homes.read_text() + 'ledger = "homes.ledger"\n')
    asked = ("peak", homes, "--epsilon", 2000, "--mechanism", "laplace", "--key")
    assert dpselect(*asked, "first").code == 0
    assert dpselect("ledger", "create", ledger, "--dataset", "readings.csv", "--total", 3000).code == 0
    refused = dpselect(*asked, "second")
    assert refused.code == 2
    assert "several data sets ('homes', 'readings.csv'): write its anchor into the data-set file" in refused.err
    named = dpselect("ledger", "show", ledger, "--dataset", "homes", "--json").json["named_by"]
    homes.write_text(homes.read_text() + f'anchor = "{named}"\n')
    refused = dpselect(*asked, "second")
    assert refused.code == 3
    assert "does not fit" in refused.err


def test_whom_the_ledger_of_a_file_protects_is_not_changed(dpselect: Callable[..., Any], homes: Path) -> None:
    assert dpselect("ledger", "create", homes.parent / "homes.ledger", "--dataset", "homes", "--total", 5000).code == 0
    homes.write_text(homes.read_text() + 'ledger = "homes.ledger"\nadjacency = "replace"\n')
    for asked in (("peak", homes, "--epsilon", 2000), ("watch", homes, "--threshold", 5, "--budget", 500)):
        for option in (("--user", "at"), ("--adjacency", "add-remove"), ("--wide",)):
            ran = dpselect(*asked, *option)
            assert (ran.code, ran.out) == (2, "")
            assert f"counts what is spent about each 'meter', so {option[0]} must stay" in ran.err
    assert dpselect("peak", homes, "--epsilon", 2000, "--user", "meter", "--adjacency", "replace").code == 0


def test_a_maximum_typed_beside_a_file_needs_all_that_is_vouched_for(dpselect: Callable[..., Any], homes: Path) -> None:
    (homes.parent / "days.csv").write_text("day,trips\n2013-01-01,500\n2013-01-02,900\n")
    facts = 'time = "day"\nvalue = "trips"\nmaximum = 1000\npopulation = 1000\nstart = 2013-01-01\nend = 2013-01-02\n'
    homes.write_text('rows = "days.csv"\n' + facts)
    asked = ("peak", homes, "--epsilon", 2000)
    ran = dpselect(*asked, "--maximum", 10)
    assert ran.code == 2
    assert "--population of the data-set file was stated for another --maximum" in ran.err
    assert dpselect(*asked, "--maximum", 2000, "--sensitivity", 1).code == 0
    assert dpselect(*asked, "--maximum", 1000).code == 0
