"""The data-set file: every fact explained, no secrets, options laid over it, and a ledger that is never made anew."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

import dpselect as dp
from dpselect.dataset.facts import Facts
from dpselect.dataset.file import FACTS, read_file, write_file
from dpselect.errors import BudgetExhausted, InvalidParameter, LedgerError, SourceError

COLUMNS = {"user": "meter", "time": "at", "value": "kwh"}
HOMES = {**COLUMNS, "cap": 10, "population": 20, "unit": "kWh", "start": "2013-01-01", "end": "2013-01-31"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twenty homes over January, of which the 20th is the peak by far."""
    rows = [f"h{home},2013-01-{day:02d},{9 if day == 20 else 1}" for home in range(20) for day in range(1, 32)]
    (tmp_path / "readings.csv").write_text("\n".join(["meter,at,kwh", *rows]) + "\n")
    return tmp_path


def test_a_file_takes_the_place_of_the_arguments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write_file(folder / "homes.toml", {"source": folder / "readings.csv", **HOMES})
    monkeypatch.chdir("/")  # places are relative to the file, not to where one stands
    homes = dp.Dataset.open(place)
    answer = homes.peak(epsilon=2000)
    assert answer.label == "2013-01-20"
    assert "counted up to 10 kWh" in str(answer)
    assert len(homes.candidates(every="week")) == 5
    assert len(dp.Dataset.open(place, start="2013-01-30").candidates()) == 2


def test_every_public_fact_is_explained_by_a_comment(folder: Path) -> None:
    text = write_file(folder / "homes.toml", {"source": "readings.csv", **HOMES}).read_text()
    lines = text.splitlines()
    written = [number for number, line in enumerate(lines) if line and not line.startswith("#")]
    assert {lines[number].split(" = ")[0] for number in written} == {"rows", *HOMES}
    assert all(lines[number - 1].startswith("# ") for number in written)


def test_every_field_of_a_data_set_can_stand_in_a_file() -> None:
    fields = {name for name in Facts.__dataclass_fields__ if name not in ("source", "_")}
    assert fields | {"rows", "ledger", "anchor", "total", "accepted"} == set(FACTS)


def test_what_was_written_is_read_again_exactly(tmp_path: Path) -> None:
    facts = {
        "source": "rows.csv",
        "user": 'a "name"\\',
        "cap": Fraction(1, 3),
        "population": 7,
        "wide": True,
        "categories": ["tea", "crème"],
        "maximum": 0.1,
        "time_format": "%d/%m/%Y",
    }
    found = read_file(write_file(tmp_path / "x.toml", facts))
    assert (found["user"], found["wide"]) == ('a "name"\\', True)
    assert (found["cap"], found["maximum"]) == (Fraction(1, 3), Fraction(1, 10))
    assert found["categories"] == ["tea", "crème"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('user = "a"', "must say where the rows are"),
        ('rows = "r.csv"\nusr = "a"', "did you mean 'user'"),
        ('rows = "r.csv"\ncap = true', "'cap' must be a number"),
        ('rows = "r.csv"\npopulation = 2.5', "'population' must be a whole number"),
        ("rows = r.csv", "texts stand in quotes"),
        ('rows = "$NOT_SET_ANYWHERE"', "which is not set"),
    ],
)
def test_a_slip_in_a_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    place = tmp_path / "homes.toml"
    place.write_text(text)
    with pytest.raises(SourceError, match=said):
        read_file(place)


def test_a_password_is_neither_written_nor_read_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "postgres://ann:hunter2@db.example/meters"
    with pytest.raises(InvalidParameter, match="environment") as caught:
        write_file(tmp_path / "homes.toml", {"source": address})
    assert not list(tmp_path.iterdir())
    (tmp_path / "homes.toml").write_text(f'rows = "{address}"')
    with pytest.raises(InvalidParameter, match="environment") as again:
        read_file(tmp_path / "homes.toml")
    assert "hunter2" not in str(caught.value) + str(again.value)
    (tmp_path / "homes.toml").write_text('rows = "$HOMES_URL"')
    monkeypatch.setenv("HOMES_URL", address)
    assert read_file(tmp_path / "homes.toml")["source"] == address


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "homes.toml"
    place.write_text("mine")
    with pytest.raises(SourceError, match="no data-set file of dpselect"):
        write_file(place, {"source": "r.csv"})
    assert place.read_text() == "mine"


def test_questions_through_a_file_are_charged_to_its_ledger(folder: Path) -> None:
    pytest.importorskip("sqlalchemy")
    from dpselect.ledger import Ledger, Total

    facts = {"source": folder / "readings.csv", **HOMES, "ledger": folder / "homes.ledger", "total": 3000}
    place = write_file(folder / "homes.toml", facts)
    assert tomllib.loads(place.read_text())["ledger"] == "homes.ledger"
    with pytest.raises(LedgerError, match="ledger create"):  # not made by a question: it may have been full
        dp.Dataset.open(place).peak(epsilon=2000)
    Ledger.create(folder / "homes.ledger", dataset="homes", total=Total.pure(3000)).close()
    assert dp.Dataset.open(place).peak(epsilon=2000).label == "2013-01-20"
    with pytest.raises(BudgetExhausted):
        dp.Dataset.open(place).peak(epsilon=2000, start="2013-01-02")


def test_whom_a_ledger_protects_is_not_changed_beside_its_file(folder: Path) -> None:
    """A promise to each row is another than one to each meter, and one ledger counts one of them."""
    pytest.importorskip("sqlalchemy")
    from dpselect.ledger import Ledger, Total

    facts = {"source": folder / "readings.csv", **HOMES, "adjacency": "replace", "ledger": folder / "homes.ledger"}
    place = write_file(folder / "homes.toml", facts)
    for name in ("homes", "rows"):
        Ledger.create(folder / f"{name}.ledger", dataset=name, total=Total.pure(3000)).close()
    for changes in ({"user": "kwh"}, {"adjacency": "add-remove"}, {"wide": True}):
        for more in ({}, {"ledger": folder / "homes.ledger"}, {"ledger": f"sqlite:///{folder}/./homes.ledger"}):
            with pytest.raises(InvalidParameter, match="counts what is spent about each 'meter'") as caught:
                dp.Dataset.open(place, **changes, **more)
            assert caught.value.parameter in changes
    same = dp.Dataset.open(place, user="meter", adjacency="replace", wide=False, cap=5)
    assert (same.adjacency, same.cap) == ("replace", 5)
    with pytest.warns(dp.DPSelectWarning, match="another one is charged"):
        assert dp.Dataset.open(place, adjacency="add-remove", ledger=folder / "rows.ledger").adjacency == "add-remove"
    with pytest.raises(InvalidParameter, match="nobody would count"):
        dp.Dataset.open(place, ledger=None)
