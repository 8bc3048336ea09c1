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
    assert load_plan(tmp_path / "plan.toml").name == "exponential"
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
        ([*LARGEST, "--public"], "--like"),
        (["plan", "--candidates", "60", "--sensitivity", "1/1000"], "epsilon must be given"),
        (["plan", "--candidates", "60", "--sensitivity", "1/1000", "--epsilon", "1e-7"], "epsilon must be at least"),
        ([*LARGEST, "--model", "rosy"], "kind must be one of"),
        ([*LARGEST, "--contender", "magic"], "way must be one of"),
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


@pytest.fixture
def homes(tmp_path):
    """A data set of which nothing but the description is there."""
    place = tmp_path / "homes.toml"
    facts = 'user = "meter"\ntime = "at"\nvalue = "kwh"\ncap = 50\npopulation = 5000\nunit = "kWh"\n'
    place.write_text(f'rows = "nowhere.csv"\n{facts}start = 2013-01-01\nend = 2013-12-31\n')
    return place


def test_a_plan_is_made_from_a_data_set_file_and_looks_at_no_row(capsys, homes, tmp_path):
    saved = tmp_path / "plan.toml"
    asked = [
        "plan",
        str(homes),
        "--threshold",
        "12",
        "--budget",
        "1",
        "--expect",
        "10%",
        "--save",
        str(saved),
        "--json",
    ]
    assert main([*asked, "--only", "exponential-rationed"]) == 0
    job = json.loads(capsys.readouterr().out)["job"]
    assert (job["count"], job["threshold"], job["share"]) == (365, 0.24, 0.1)
    plan = load_plan(saved)
    assert plan.unit == 50.0
    assert plan.family.sensitivity == pytest.approx(1 / 5000)
    assert main(["plan", str(homes), "--epsilon", "0.1", "--range", "5", "15", "--json", "--save", str(saved)]) == 0
    assert json.loads(capsys.readouterr().out)["job"]["public"] == {"model": "seasonal", "low": 0.1, "high": 0.3}
    assert load_plan(saved).asked == "largest"


def test_a_data_set_says_what_need_not_be_said(capsys, homes, tmp_path):
    for more, message in (
        (["--sensitivity", "0.1"], "--sensitivity"),
        (["--candidates", "9"], "--candidates"),
        (["--expect", "10%"], "--expect"),
    ):
        assert main(["plan", str(homes), "--epsilon", "0.1", *more]) == 2
        assert message in capsys.readouterr().err
    rows = tmp_path / "rows.csv"
    rows.write_text("meter,at,kwh\n")
    assert main(["plan", str(rows), "--epsilon", "0.1"]) == 2
    assert "homes.toml" in capsys.readouterr().err


def test_from_a_data_set_to_a_plan_to_an_answer(capsys, homes):
    days = [f"2013-01-{day:02d}" for day in range(1, 32)]
    rows = [f"m{person},{day},{30 if day[-2:] in ('07', '20') else 3}" for day in days for person in range(20)]
    (homes.parent / "rows.csv").write_text("\n".join(["meter,at,kwh", *rows]) + "\n")
    described = homes.read_text().replace("nowhere", "rows").replace("12-31", "01-31").replace("5000", "20")
    homes.write_text(described)
    saved = homes.parent / "plan.toml"
    asked = ["plan", str(homes), "--threshold", "15", "--budget", "400", "--only", "exponential-rationed", "--json"]
    assert main([*asked, "--save", str(saved)]) == 0
    capsys.readouterr()
    assert main(["watch", str(homes), "--plan", str(saved), "--json"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["period"] for one in answers[:-1] if one["answer"] == "above"] == ["2013-01-07", "2013-01-20"]
    assert main(["plan", str(homes), "--epsilon", "400", "--json", "--save", str(saved)]) == 0
    capsys.readouterr()
    assert main(["peak", str(homes), "--plan", str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answer"] in ("2013-01-07", "2013-01-20")


def test_a_plan_a_dry_run_and_the_advice_say_the_same(capsys, homes):
    """The same numbers under the same names, and the same sentence, by `plan` and by `peak` and `watch` themselves."""

    def ran(*arguments):
        assert main([str(one) for one in arguments]) == 0
        shown = capsys.readouterr()
        return shown.out if "--json" in arguments else shown.out + shown.err

    # A dry run looks for the columns, and at no value.
    (homes.parent / "nowhere.csv").write_text("meter,at,kwh\na,2013-01-01,1\n")
    for asked, verb in (
        (["--epsilon", "0.1", "--range", "5", "15"], "peak"),
        (["--threshold", "12", "--budget", "1", "--expect", "10%"], "watch"),
    ):
        planned = json.loads(ran("plan", homes, *asked, "--json"))
        dry = [json.loads(line) for line in ran(verb, homes, *asked, "--dry-run", "--json").splitlines()]
        chosen = next(one for one in dry if one.get("chosen", True))
        assert planned["chosen"] == chosen["mechanism"]
        names = [name for name in planned if name.startswith(("expected_", "guess_"))]
        assert len(names) >= 6
        assert {name: planned[name] for name in names} == pytest.approx({name: chosen[name] for name in names})
        told = " ".join(ran("plan", homes, *asked).split())
        sentence = told.split(f"Expected of {planned['chosen']}: ")[1].rstrip(".")
        assert sentence.casefold() in " ".join(ran(verb, homes, *asked, "--dry-run").split()).casefold()
