"""``dpselect plan``: one table, one sentence, files on request, one line on bad input."""

import json

import pytest

from dpselect.cli import main
from dpselect.planning import load_plan

LARGEST = ["plan", "--candidates", "60", "--epsilon", "0.3", "--sensitivity", "1/1000", "--monotone"]


def test_a_table_and_a_sentence(capsys):
    assert main(LARGEST) == 0
    shown = capsys.readouterr().out
    assert "Permute-and-flip" in shown
    assert "answers this best" in " ".join(shown.split())
    assert "Nothing was spent" in shown


def test_machines_get_every_contender_and_people_get_files(capsys, tmp_path):
    arguments = [*LARGEST, "--json", "--save", str(tmp_path / "plan.toml"), "--contender", "exponential"]
    arguments += ["--report", str(tmp_path / "plan.html"), "--plot", str(tmp_path / "plan.svg")]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["chosen"] == "exponential"
    assert found["plans"][0]["contender"] == "permute-and-flip"
    assert load_plan(tmp_path / "plan.toml").contender == "exponential"
    assert "<svg" in (tmp_path / "plan.html").read_text()
    assert (tmp_path / "plan.svg").exists()


def test_a_job_from_a_file(capsys, tmp_path):
    place = tmp_path / "job.toml"
    place.write_text('asked = "largest"\ncount = 20\nepsilon = 0.5\n[family]\nsensitivity = 0.01\n')
    assert main(["plan", "--job", str(place), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["job"]["count"] == 20
    assert main(["plan", "--job", str(place), "--epsilon", "1"]) == 2
    assert "--job" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "--candidates", "9", "--epsilon", "1"], "sensitivity"),
        (["plan", "--epsilon", "1", "--sensitivity", "0.1"], "count must be"),
        ([*LARGEST, "--threshold", "0.5"], "not both"),
        ([*LARGEST, "--public"], "--profile"),
        (["plan", "--candidates", "60", "--sensitivity", "1/1000"], "epsilon must be given"),
        (["plan", "--candidates", "60", "--sensitivity", "1/1000", "--epsilon", "1e-7"], "epsilon must be at least"),
        ([*LARGEST, "--model", "rosy"], "kind must be one of"),
        ([*LARGEST, "--contender", "magic"], "contender must be one of"),
        ([*LARGEST, "--profile", "nowhere.csv"], "public"),
        ([*LARGEST, "--profile", "nowhere.csv", "--public"], "cannot read"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(capsys, arguments, message):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert captured.out == ""


def test_a_saved_plan_can_be_watched_with(capsys, tmp_path, monkeypatch):
    import io
    import sys

    past, saved = tmp_path / "past.txt", tmp_path / "plan.toml"
    past.write_text("\n".join(["0.2", "0.3", "0.8", "0.1"] * 10))
    given = ["plan", "--profile", str(past), "--public", "--threshold", "0.5", "--epsilon", "2"]
    given += ["--sensitivity", "1/1000", "--monotone", "--only", "laplace-kept", "--save", str(saved), "--json"]
    assert main([*given, "--outlook", "steady"]) == 0
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0.1\n0.9\n0.2\n")))
    assert main(["watch", "--plan", str(saved)]) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["questions"] == 3
    assert last["spent"] <= 2.0
