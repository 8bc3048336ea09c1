"""The tests notice faults: what they let pass would not be noticed in real changes either."""

from __future__ import annotations

import pytest
from tests.mutants.faults import FAULTS, Fault
from tests.mutants.trial import baseline, misplaced, try_one

QUICK = [fault for fault in FAULTS if fault.quick]


def test_every_fault_finds_its_text() -> None:
    assert {fault.name: wrong for fault in FAULTS if (wrong := misplaced(fault))} == {}


def test_there_are_enough_faults_of_different_kinds() -> None:
    assert len(FAULTS) >= 40
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert len({fault.file for fault in FAULTS}) >= 15
    assert len(QUICK) >= 12


def test_a_fault_whose_text_is_gone_is_not_taken_for_noticed() -> None:
    gone = Fault("gone", "src/dpselect/errors.py", "no such text", "", ("tests/privacy/test_family.py",))
    assert "put the fault where the code is now" in try_one(gone).why
    assert not try_one(gone).killed


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


@pytest.mark.parametrize("fault", QUICK, ids=lambda fault: fault.name)
def test_the_most_telling_faults_are_noticed(fault: Fault) -> None:
    assert try_one(fault).killed


@pytest.mark.slow
def test_the_tests_named_with_the_faults_pass_without_them() -> None:
    assert baseline(FAULTS) is None


@pytest.mark.slow
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if not fault.quick], ids=lambda fault: fault.name)
def test_every_other_fault_is_noticed(fault: Fault) -> None:
    outcome = try_one(fault)
    assert outcome.killed, outcome.why
