"""The tests notice faults: what they let pass would not be noticed in real changes either."""

from __future__ import annotations

import pytest
from tests.mutants.fault import Fault
from tests.mutants.faults import FAULTS
from tests.mutants.planted.equivalent import EQUIVALENT
from tests.mutants.trial import baseline, misplaced, missing_tests, try_one


def test_every_fault_finds_its_text() -> None:
    assert {fault.name: wrong for fault in FAULTS if (wrong := misplaced(fault))} == {}


def test_every_fault_names_tests_that_are_there() -> None:
    assert {fault.name: missing for fault in FAULTS if (missing := missing_tests(fault))} == {}
    assert [fault.name for fault in FAULTS if not fault.tests] == []


def test_what_is_called_equivalent_has_its_text_and_its_argument() -> None:
    for fault, why in EQUIVALENT:
        assert misplaced(fault) is None
        assert len(why.split()) > 30


def test_a_test_that_is_not_there_is_missed() -> None:
    here = "tests/mutants/test_mutants.py"
    named = (f"{here}::test_no_such_claim", "tests/nowhere.py", f"{here}::test_every_fault_finds_its_text", here)
    assert missing_tests(Fault("x", "x", "x", "x", named)) == [f"{here}::test_no_such_claim", "tests/nowhere.py"]


def test_there_are_enough_faults_of_different_kinds() -> None:
    assert len(FAULTS) >= 200
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert len({fault.file for fault in FAULTS}) >= 45


def test_a_fault_whose_text_is_gone_is_not_taken_for_noticed() -> None:
    gone = Fault("gone", "src/dpselect/errors.py", "no such text", "", ("tests/privacy/test_family.py",))
    assert "put the fault where the code is now" in try_one(gone).why
    assert not try_one(gone).killed


@pytest.mark.slow
def test_a_harmless_change_survives() -> None:
    harmless = Fault(
        "harmless",
        "src/dpselect/errors.py",
        "Everything dpselect raises",
        "All that dpselect raises",
        ("tests/privacy/test_family.py",),
    )
    outcome = try_one(harmless)
    assert (outcome.killed, outcome.why) == (False, "all tests passed")


@pytest.mark.slow
def test_the_tests_named_with_the_faults_pass_without_them() -> None:
    assert baseline(FAULTS) is None


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_is_noticed(fault: Fault) -> None:
    outcome = try_one(fault)
    assert outcome.killed, outcome.why
