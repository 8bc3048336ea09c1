"""The data-set file is public: no guess made from the rows gets into it unless the curator has confirmed it."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dpselect.cli import main
from dpselect.dataset.file import accepted_facts, read_file, write_file

FACTS = ("--cap", "10", "--population", "50", "--from", "2013-01-01", "--to", "2013-01-03")
COLUMNS = ("--user", "meter", "--time", "at", "--value", "kwh")


def city(folder: Path, *, one_more: bool) -> Path:
    """Forty homes, half of them with decimal commas; one more person tips the balance."""
    lines = ["meter;at;kwh"]
    for home, day in itertools.product(range(40), range(1, 4)):
        reading = "9,5" if home % 2 else "9.5"
        lines.append(f"home-{home};2013-01-0{day};{reading}")
    if one_more:
        lines.append("last;2013-01-01;0,1")
    place = folder / "readings.csv"
    place.write_text("\n".join(lines) + "\n")
    return place


def written(folder: Path, *options: str, one_more: bool) -> tuple[int, str | None]:
    folder.mkdir()
    readings, homes = city(folder, one_more=one_more), folder / "homes.toml"
    code = main(["describe", str(readings), "--delimiter", ";", *FACTS, *options, "--write", str(homes)])
    return code, homes.read_text() if homes.exists() else None


def test_one_more_person_does_not_change_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the rows hold, a file that is written holds what was typed and nothing else."""
    code, without = written(tmp_path / "without", *COLUMNS, one_more=False)
    assert (code, without is None) == (0, False)
    code, with_one = written(tmp_path / "with", *COLUMNS, one_more=True)
    assert with_one is None  # refused: only the curator sees that
    assert code == 2
    assert "--decimal was guessed from the rows" in capsys.readouterr().err
    for sign in ",.":
        files = [
            written(tmp_path / f"{more}{ord(sign)}", *COLUMNS, "--decimal", sign, one_more=more)
            for more in (False, True)
        ]
        assert files[0] == files[1]
        assert tomllib.loads(files[0][1] or "")["decimal"] == sign


def test_what_was_accepted_is_marked_and_stays_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = written(tmp_path / "one", "--user", "meter", "--accept", one_more=True)
    assert code == 0
    homes = tmp_path / "one" / "homes.toml"
    assert tomllib.loads(text or "")["accepted"] == ["decimal", "time", "value"]
    assert accepted_facts(homes) == ("decimal", "time", "value")
    assert "accepted" not in read_file(homes)
    # Described again, what is typed now is no guess any more; what was accepted before stays marked.
    assert main(["describe", str(homes), "--decimal", ",", "--write", str(homes)]) == 0
    assert accepted_facts(homes) == ("time", "value")


def test_a_file_of_typed_facts_alone_marks_nothing(tmp_path: Path) -> None:
    place = write_file(tmp_path / "homes.toml", {"source": "r.csv", "user": "meter", "decimal": ","})
    assert accepted_facts(place) == ()
    assert "accepted" not in place.read_text()


def test_the_command_it_proposes_writes_the_file(tmp_path: Path) -> None:
    """What describe shows can be typed as it is: no guess is left in it."""
    readings = city(tmp_path, one_more=True)
    homes = tmp_path / "my homes.toml"

    def run(command: str, **how: Any) -> subprocess.CompletedProcess[str]:
        start = f"{sys.executable} -m dpselect"
        whole = command.replace("dpselect", start, 1)
        return subprocess.run(whole, shell=True, capture_output=True, text=True, **how)  # noqa: S602 - our own words

    options = " ".join(FACTS)
    looked = run(f"dpselect describe '{readings}' {options} --write '{homes}' --total 4000")
    assert looked.returncode == 2
    assert not homes.exists()
    assert not homes.with_suffix(".ledger").exists()
    proposed = next(line.strip() for line in looked.stdout.splitlines() if " describe " in line)
    wrote = run(proposed)
    assert wrote.returncode == 0, wrote.stderr
    facts = read_file(homes)
    assert (facts["decimal"], facts["delimiter"], facts["user"]) == (",", ";", "meter")
    assert accepted_facts(homes) == ()
    answer = run(f"dpselect peak '{homes}' --epsilon 1000 --anyway --json")
    assert answer.returncode == 0, answer.stderr


def test_the_command_it_proposes_repeats_no_password() -> None:
    from dpselect.cli.describe import _next
    from dpselect.dataset.describe import Description

    found = Description(columns={}, facts={"user": "meter"}, guessed=("user",), counts={}, remarks=(), report=None)
    told = _next("postgres://curator:hunter2@db.example/meters", {"ledger": "x"}, found, write=None)
    assert "hunter2" not in told
    assert "--user meter" in told
