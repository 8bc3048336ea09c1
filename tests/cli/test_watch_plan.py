"""``watch --plan``: a plan kept in a file says everything about the line, the budget and the noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import dpselect as dp
from dpselect.planning import Plan
from dpselect.planning.ways import Capped, GaussianByHand, OneShot

FAMILY = dp.QueryFamily(lower=0, upper=1, sensitivity=1e-4, monotone=True)


def plan(**changes: object) -> Plan:
    settings: dict[str, object] = {
        "way": GaussianByHand.stated((0.01, 0.01), resample=False, clip=(0.2, 0.2)),
        "asked": "crossings",
        "family": FAMILY,
        "count": 100,
        "epsilon": 1.0,
        "threshold": 0.5,
    }
    return Plan(**(settings | changes))  # type: ignore[arg-type]


def test_a_plan_answers_a_stream(dpselect: Callable[..., object], tmp_path: Path) -> None:
    path = plan().save(tmp_path / "plan.toml")
    ran = dpselect("watch", "--plan", path, "--anyway", stdin="0.1\n0.9\n0.2\n")
    assert ran.code == 0, ran.err
    assert [line["answer"] for line in ran.lines[:-1]] == ["below", "above", "below"]
    assert ran.lines[-1]["budget"] == 1.0
    mechanism = plan().mechanism()
    assert ran.lines[-1]["spent"] == pytest.approx(mechanism.watcher.loss(below=2, above=1), rel=1e-9)


def test_a_laplace_plan_answers_too_and_its_dry_run_says_so(dpselect: Callable[..., object], tmp_path: Path) -> None:
    way = Capped(name="laplace-kept", scale_threshold=0.01, scale_query=0.01)
    path = plan(way=way).save(tmp_path / "plan.toml")
    assert "Laplace" in dpselect("watch", "--plan", path, "--dry-run").out
    assert dpselect("watch", "--plan", path, "--anyway", stdin="0.9\n").lines[0]["answer"] == "above"


def test_a_plan_for_a_table_must_be_for_its_family(
    dpselect: Callable[..., object], readings: Path, tmp_path: Path
) -> None:
    columns = (
        *("--user", "meter", "--time", "at", "--value", "kwh", "--cap", "10", "--population", "20"),
        *("--from", "2013-01-01", "--to", "2013-01-31"),
    )
    refused = dpselect("watch", readings, *columns, "--plan", plan().save(tmp_path / "other.toml"))
    assert refused.code == 2
    assert "make the plan again" in refused.err
    from dpselect.tables import Question

    family = Question(user="meter", time="at", value="kwh", cap=10, population=20).family
    fitting = plan(family=family, epsilon=5000.0).save(tmp_path / "plan.toml")
    ran = dpselect("watch", readings, *columns, "--plan", fitting, "--anyway", "--json")
    assert ran.code == 0, ran.err
    above = [line["period"] for line in ran.lines[:-1] if line["answer"] == "above"]
    assert above == ["2013-01-20", "2013-01-21", "2013-01-22"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--threshold", "0.5"), "--threshold does not go with --plan"),
        (("--budget", "2"), "--budget does not go with --plan"),
        (("--clip", "0.1"), "--clip does not go with --plan"),
        (("--sensitivity", "1"), "--sensitivity does not go with --plan"),
    ],
)
def test_what_the_plan_says_is_not_said_twice(
    dpselect: Callable[..., object], tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    ran = dpselect("watch", "--plan", plan().save(tmp_path / "plan.toml"), *options)
    assert ran.code == 2
    assert said in ran.err


def test_other_files_and_other_plans_are_refused_in_one_line(dpselect: Callable[..., object], tmp_path: Path) -> None:
    junk = tmp_path / "junk.toml"
    junk.write_text("not = [toml")
    way = OneShot(name="permute-and-flip", scale=0.1)
    largest = plan(way=way, asked="largest", threshold=None).save(tmp_path / "largest.toml")
    for path in (junk, largest, tmp_path / "missing.toml"):
        ran = dpselect("watch", "--plan", path)
        assert ran.code == 2
        assert ran.err.count("\n") == 1, ran.err


TABLE = (
    *("--user", "meter", "--time", "at", "--value", "kwh", "--cap", "10", "--population", "5000"),
    *("--from", "2013-01-01", "--to", "2013-01-31"),
)


def test_a_plan_made_from_the_table_is_taken_by_the_table(
    dpselect: Callable[..., object], readings: Path, tmp_path: Path
) -> None:
    """With more people Δ is smaller, and the plan still fits; with fewer it is larger, and the refusal says so."""
    place = tmp_path / "plan.toml"
    made = dpselect("watch", readings, *TABLE, "--threshold", "5", "--budget", 1, "--dry-run", "--save-plan", place)
    assert made.code == 0, made.err
    assert dpselect("watch", readings, *TABLE, "--plan", place, "--json").code == 0
    more, fewer = ([people if word == "5000" else word for word in TABLE] for people in ("6000", "400"))
    ran = dpselect("watch", readings, *more, "--plan", place, "--json")
    assert ran.code == 0, ran.err
    assert ran.lines[-1]["expected_f1"] > ran.lines[-1]["guess_f1"]
    refused = dpselect("watch", readings, *fewer, "--plan", place)
    assert refused.code == 2
    assert "one person moves by up to 0.002, but here it is up to 0.025" in refused.err
    other_cap = ["20" if word == "10" else word for word in TABLE]
    assert "values up to 10, but here they go up to 20" in dpselect("watch", readings, *other_cap, "--plan", place).err


def test_a_plan_takes_no_place_of_another_file(dpselect: Callable[..., object], readings: Path, tmp_path: Path) -> None:
    before = readings.read_bytes()
    asked = ("watch", readings, *TABLE, "--threshold", "5", "--budget", 1, "--dry-run", "--save-plan")
    other = tmp_path / "other.toml"
    other.write_text("a = 1\n")
    for place in (readings, other):
        ran = dpselect(*asked, place)
        assert ran.code == 2, ran.err
    assert readings.read_bytes() == before
    assert other.read_text() == "a = 1\n"
