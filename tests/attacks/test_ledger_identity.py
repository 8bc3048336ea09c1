"""Who pays: the data set that the file and the ledger agree on, whatever files are called and however copied."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.conftest import FACTS, JANUARY

import dpselect as dp
from dpselect import ledger as ledger_room
from dpselect.errors import InvalidParameter, LedgerError
from dpselect.ledger import Ledger, Total

ASK = ("--epsilon", 60, "--anyway")


def charged(place: Path, name: str) -> float:
    with Ledger.open(place, dataset=name) as ledger:
        return ledger.balance().spent


class TestCopies:
    @pytest.fixture
    def two(self, describe: Callable[..., Path]) -> Path:
        """A ledger of two data sets, and the file of the first."""
        homes = describe()
        Ledger.create(homes.with_suffix(".ledger"), dataset="shops", total=Total.pure(100)).close()
        return homes

    def test_a_copy_under_the_name_of_another_data_set_spends_its_own_budget(
        self, dpselect: Callable[..., Any], two: Path
    ) -> None:
        shops = two.with_name("shops.toml")
        shutil.copy(two, shops)
        assert dpselect("peak", two, *ASK).code == 0
        assert dpselect("peak", shops, "--epsilon", 50, "--anyway").code == 3, "40 of 100 is left"
        assert dpselect("peak", shops, *ASK, "--json").json["repeated"]
        assert charged(two.with_suffix(".ledger"), "shops") == 0.0
        assert "50 of 100" not in dpselect("ledger", "show", shops).out
        assert dpselect("ledger", "show", shops, "--json").json["dataset"] == "homes"

    def test_a_file_that_lost_its_anchor_is_refused_among_several(
        self, dpselect: Callable[..., Any], two: Path
    ) -> None:
        lines = [line for line in two.read_text().splitlines() if not line.startswith("anchor")]
        two.with_name("shops.toml").write_text("\n".join(lines))
        ran = dpselect("peak", two.with_name("shops.toml"), *ASK)
        assert ran.code == 2
        assert "several data sets" in ran.err
        assert charged(two.with_suffix(".ledger"), "shops") == 0.0

    def test_a_table_called_like_a_data_set_does_not_choose_it(
        self, dpselect: Callable[..., Any], two: Path, readings: Path
    ) -> None:
        shutil.copy(readings, readings.with_name("shops"))
        ran = dpselect("peak", readings, *FACTS, *JANUARY, *ASK, "--ledger", two.with_suffix(".ledger"))
        assert ran.code == 2
        assert "several data sets" in ran.err


class TestUnit:
    """A promise to each row is another than one to each meter, and a ledger counts one of them."""

    @pytest.mark.parametrize(("old", "new"), [('user = "meter"', 'user = "kwh"'), ('user = "meter"', 'user = "at"')])
    def test_another_person_in_a_copy_of_the_file_is_refused(
        self, dpselect: Callable[..., Any], describe: Callable[..., Path], old: str, new: str
    ) -> None:
        homes = describe()
        edited = homes.with_name("edited.toml")
        edited.write_text(homes.read_text().replace(old, new))
        assert new in edited.read_text()
        for verb in (("peak", "--epsilon", 60), ("watch", "--threshold", 25, "--budget", 60)):
            ran = dpselect(verb[0], edited, *verb[1:], "--anyway")
            assert (ran.code, ran.out) == (2, "")
            assert "counts what is spent about each 'meter'" in ran.err
        assert charged(homes.with_suffix(".ledger"), "homes") == 0.0

    def test_typed_without_a_file_as_well(
        self, dpselect: Callable[..., Any], describe: Callable[..., Path], readings: Path
    ) -> None:
        ledger = describe().with_suffix(".ledger")
        for other in (("--user", "kwh"), ("--adjacency", "replace")):
            ran = dpselect("peak", readings, *FACTS, *JANUARY, *other, *ASK, "--ledger", ledger)
            assert ran.code == 2
            assert "counts what is spent about each 'meter'" in ran.err
        stream = ("watch", "--sensitivity", "1/100", "--threshold", "0.5", "--budget", 60, "--anyway")
        assert dpselect(*stream, "--ledger", ledger, stdin="0.1\n").code == 2

    def test_the_first_question_says_it_where_nothing_did(
        self, dpselect: Callable[..., Any], readings: Path, tmp_path: Path
    ) -> None:
        place = tmp_path / "homes.ledger"
        Ledger.create(place, dataset="homes", total=Total.pure(100)).close()
        asked = ("peak", readings, *FACTS, *JANUARY, "--ledger", place, "--anyway")
        assert dpselect(*asked, "--epsilon", 30).code == 0
        assert dpselect(*asked, "--epsilon", 30, "--user", "kwh").code == 2
        with Ledger.open(place) as ledger:
            assert ledger.unit() == ledger_room.PrivacyUnit(user="meter", adjacency="add-remove")
            assert [entry.kind for entry in ledger.entries()] == ["create", "unit", "reserve", "settle"]
            assert ledger.verify().holds
            with pytest.raises(InvalidParameter, match="must stay 'meter'"):
                ledger.state_unit(ledger_room.PrivacyUnit(user="kwh", adjacency="add-remove"))

    def test_it_is_checked_in_the_step_that_charges(self, place: str) -> None:
        """Two who open a ledger that does not say it yet: the first to charge decides, the other is refused."""
        meters, rows = (ledger_room.PrivacyUnit(user=user, adjacency="add-remove") for user in ("meter", "kwh"))
        with Ledger.create(place, dataset="homes", total=Total.pure(1)) as made:
            with Ledger.open(place, unit=meters) as first, Ledger.open(place, unit=rows) as second:
                first.ask({"question": 1}, cost=0.25, draw=lambda: "x")
                with pytest.raises(InvalidParameter, match="'meter'"):
                    second.ask({"question": 2}, cost=0.25, draw=lambda: pytest.fail("data was touched"))
            assert made.balance().spent == 0.25
            with pytest.raises(InvalidParameter, match="'meter'"):
                Ledger.open(place, unit=rows)

    def test_a_curator_can_correct_it_until_something_is_charged(
        self, dpselect: Callable[..., Any], describe: Callable[..., Path], readings: Path
    ) -> None:
        homes = describe()
        again = ("describe", homes, "--write", homes)
        assert dpselect(*again, "--adjacency", "replace").code == 0
        assert dpselect("peak", homes, *ASK).code == 0
        ran = dpselect(*again, "--adjacency", "add-remove")
        assert ran.code == 2
        assert "has charges" in ran.err
        with Ledger.open(homes.with_suffix(".ledger")) as ledger:
            assert ledger.unit() == ledger_room.PrivacyUnit(user="meter", adjacency="replace")
            assert ledger.verify().holds


class TestUnmetered:
    def test_a_ledger_that_a_file_names_is_not_left_out(self, describe: Callable[..., Path]) -> None:
        with pytest.raises(InvalidParameter, match="nobody would count"):
            dp.Dataset.open(describe(), ledger=None)

    @pytest.fixture
    def homes(self, readings: Path) -> dp.Dataset:
        return dp.Dataset(readings, user="meter", time="at", value="kwh", cap=50, population=20, total=100,
                          start="2013-01-01", end="2013-01-31")  # fmt: skip

    def test_a_copy_has_no_second_budget(self, homes: dp.Dataset) -> None:
        homes.peak(epsilon=60, anyway=True)
        for other in (copy.copy(homes), replace(homes, unit="kWh")):
            assert other.spent == homes.spent
            with pytest.raises(dp.errors.BudgetExhausted):
                other.peak(epsilon=60, anyway=True)
        unmade = type(homes).__dataclass_fields__["budget"].default
        assert unmade is not None
        for budget in (None, type(homes.budget)(100)):
            with pytest.raises(InvalidParameter, match="kept by a data set itself"):
                replace(homes, budget=budget)
        with pytest.raises(InvalidParameter, match="kept by a data set itself"):
            replace(homes, total=1000)

    def test_a_copied_budget_is_refused_or_the_same(self, homes: dp.Dataset) -> None:
        try:
            copied = replace(homes, budget=copy.copy(homes.budget))
        except (InvalidParameter, TypeError, dp.errors.StateRefused):
            return
        homes.peak(epsilon=60, anyway=True)
        assert copied.spent == homes.spent

    def test_a_copy_does_not_leave_its_ledger(self, describe: Callable[..., Path], tmp_path: Path) -> None:
        homes = dp.Dataset.open(describe())
        Ledger.create(tmp_path / "other.ledger", dataset="homes", total=Total.pure(100)).close()
        for change in ({"ledger": None}, {"ledger": tmp_path / "other.ledger"}, {"anchor": None}, {"total": None}):
            with pytest.raises(InvalidParameter):
                replace(homes, **change)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="'meter'"):
            replace(homes, user="kwh").peak(epsilon=60, anyway=True)


def test_an_open_ledger_in_place_of_the_file_s_own_is_refused(describe: Callable[..., Path], tmp_path: Path) -> None:
    homes = describe()
    with (
        Ledger.create(tmp_path / "other.ledger", dataset="homes", total=Total.pure(100)) as other,
        pytest.raises(LedgerError, match="another ledger"),
    ):
        dp.Dataset.open(homes, ledger=other).peak(epsilon=60, anyway=True)
    with Ledger.open(homes.with_suffix(".ledger")) as own:
        assert dp.Dataset.open(homes, ledger=own).peak(epsilon=60, anyway=True).entry == 2


class TestRolledBack:
    """A copy of the ledger from before a question, put back after it."""

    @pytest.fixture
    def rolled_back(self, dpselect: Callable[..., Any], describe: Callable[..., Path]) -> tuple[Path, str]:
        """The data-set file and the last anchor before the ledger was put back."""
        homes = describe()
        ledger = homes.with_suffix(".ledger")
        with Ledger.open(ledger) as opened:
            opened.close()
            shutil.copy2(ledger, ledger.with_suffix(".old"))
        assert dpselect("peak", homes, *ASK).code == 0
        anchor = str(dpselect("ledger", "verify", homes, "--json").json["anchor"])
        dpselect("--version")
        for file in homes.parent.glob("homes.ledger*"):
            file.unlink()
        ledger.with_suffix(".old").rename(ledger)
        return homes, anchor

    def test_the_anchor_of_a_command_refuses_it(
        self, dpselect: Callable[..., Any], rolled_back: tuple[Path, str]
    ) -> None:
        homes, anchor = rolled_back
        for verb in (("peak", *ASK), ("watch", "--threshold", 25, "--budget", 60, "--anyway")):
            ran = dpselect(verb[0], homes, *verb[1:], "--anchor", anchor)
            assert (ran.code, ran.out) == (2, "")
            assert "older copy" in ran.err
        assert charged(homes.with_suffix(".ledger"), "homes") == 0.0

    def test_so_does_the_anchor_of_the_file(self, dpselect: Callable[..., Any], rolled_back: tuple[Path, str]) -> None:
        homes, anchor = rolled_back
        lines = [line for line in homes.read_text().splitlines() if not line.startswith("anchor")]
        homes.write_text("\n".join([*lines, f'anchor = "{anchor}"']))
        assert "older copy" in dpselect("peak", homes, *ASK).err
        with pytest.raises(LedgerError, match="older copy"):
            dp.Dataset.open(homes).peak(epsilon=60, anyway=True)

    def test_another_anchor_does_not_choose_another_data_set(
        self, dpselect: Callable[..., Any], describe: Callable[..., Path]
    ) -> None:
        homes = describe()
        with Ledger.create(homes.with_suffix(".ledger"), dataset="shops", total=Total.pure(100)) as shops:
            anchor = str(shops.identity)
        assert dpselect("peak", homes, *ASK, "--anchor", anchor).code == 2

    def test_verify_without_an_anchor_does_not_claim_to_see_it(
        self, dpselect: Callable[..., Any], rolled_back: tuple[Path, str]
    ) -> None:
        homes, anchor = rolled_back
        ledger = homes.with_suffix(".ledger")
        plain = dpselect("ledger", "verify", ledger)
        assert plain.code == 0
        assert "cut off at the end, show by an --anchor alone" in " ".join(plain.out.split())
        assert dpselect("ledger", "verify", ledger, "--json").json["anchored"] is None
        found = dpselect("ledger", "verify", homes, "--anchor", anchor)
        assert found.code == 2
        assert "cut off" in found.err
