"""Every command comes from one registry, and whatever ends one that spends tells what it may have cost."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cyclopts import App

import dpselect.cli
from dpselect.cli import spent
from dpselect.cli.application import options_of
from dpselect.cli.verbs import VERBS, Verb
from dpselect.errors import SourceError
from dpselect.privacy.loss import Loss

#: A command of each verb that spends, behind a table: a verb without one fails below.
ASKED = {"peak": ["--epsilon", "0.5", "--anyway"], "watch": ["--threshold", "5", "--budget", "0.5", "--anyway"]}
TABLE = ["--user", "meter", "--time", "at", "--value", "kwh", "--cap", "10", "--population", "20"]
TABLE += ["--from", "2013-01-01", "--to", "2013-01-10"]
SPENDING = [name for name, verb in VERBS.items() if verb.spends]


def test_every_verb_that_spends_has_a_command_here() -> None:
    assert set(ASKED) == set(SPENDING)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_a_module_and_a_function_of_its_name(name: str) -> None:
    module = importlib.import_module(f"dpselect.cli.{name}")
    found = getattr(module, name)
    assert isinstance(found, App) == VERBS[name].group
    told = found.help if isinstance(found, App) else inspect.getdoc(found) or ""
    assert " ".join(told.split("\n\n")[0].split()) == VERBS[name].line


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_that_can_charge_is_said_to_spend(name: str) -> None:
    """Who asks a plan, or says that a charge begins, spends; and can be tried without spending."""
    text = Path(dpselect.cli.__file__).with_name(f"{name}.py").read_text()
    assert ("asking.ask(" in text or "spent.begin(" in text) == VERBS[name].spends
    assert ("--dry-run" in options_of([name])) == VERBS[name].spends


@pytest.mark.parametrize("name", SPENDING)
def test_a_table_that_breaks_after_the_charge_tells_what_to_count(
    dpselect: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    """Rows are read after the charge, so that they cannot be read is no free answer."""
    (tmp_path / "rows.csv").write_text('meter,at,kwh\na,2013-01-01,"open\n')
    ran = dpselect(name, tmp_path / "rows.csv", *TABLE, *ASKED[name])
    assert ran.code == 2, ran.err
    assert "count ε = 0.5 as spent" in ran.err


@pytest.mark.parametrize("name", SPENDING)
def test_a_refusal_before_the_charge_costs_nothing(dpselect: Callable[..., Any], tmp_path: Path, name: str) -> None:
    (tmp_path / "rows.csv").write_text("meter,at,kwh\na,2013-01-01,1\n")
    ran = dpselect(name, tmp_path / "rows.csv", *TABLE, "--value", "other", *ASKED[name])
    assert ran.code == 2
    assert ran.err.endswith("nothing was spent\n")


@pytest.mark.parametrize(
    ("failure", "code"), [(SourceError("no rows"), 2), (KeyboardInterrupt(), 130), (KeyError(), 1)]
)
@pytest.mark.parametrize("registered", [True, False])
def test_a_new_verb_tells_what_it_cost_however_it_fails(
    dpselect: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
    code: int,
    registered: bool,
) -> None:
    """A module and an entry are all there is to a new command; forgetting to say that it spends does no harm."""

    def median() -> None:
        """Which value stands in the middle?"""
        spent.begin(Loss(epsilon=0.25), ledger=False, charged=lambda: True)
        raise failure

    module = ModuleType("dpselect.cli.median")
    module.median = median  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dpselect.cli.median", module)
    monkeypatch.setitem(VERBS, "median", Verb("Which value stands in the middle?", spends=registered))
    ran = dpselect("median")
    assert ran.code == code
    assert "count ε = 0.25 as spent" in ran.err


def test_a_verb_that_spends_nothing_says_nothing_of_it(dpselect: Callable[..., Any]) -> None:
    ran = dpselect("calibrate", "--candidates", "9", "--epsilon", "-1", "--sensitivity", "1")
    assert ran.code == 2
    assert "spent" not in ran.err
