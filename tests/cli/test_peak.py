"""``peak``: from a table to an answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import dpselect as dp
from dpselect.errors import InvalidParameter

COLUMNS = (
    *("--user", "meter", "--time", "at", "--value", "kwh", "--cap", "10"),
    *("--from", "2013-01-01", "--to", "2013-01-31"),
)


def test_peak_finds_a_clear_peak(dpselect: Callable[..., object], readings: Path) -> None:
    ran = dpselect("peak", readings, *COLUMNS, "--population", 20, "--epsilon", 2000, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["answer"] == "2013-01-20"  # the runner-up is 14 standard deviations away
    assert ran.json["index"] == 19
    assert 0 < ran.json["epsilon"] <= 2000
    assert ran.json["delta"] == 0
    assert ran.json["noise"] == "private"


@pytest.mark.parametrize("mechanism", ["gaussian", "permute-and-flip", "exponential", "laplace"])
def test_every_mechanism_answers_at_the_asked_cost(
    dpselect: Callable[..., object], readings: Path, mechanism: str
) -> None:
    ran = dpselect(
        *("peak", readings, *COLUMNS, "--population", 20, "--epsilon", 2000, "--mechanism", mechanism, "--json")
    )
    assert ran.json["answer"] == "2013-01-20"
    assert 1999 < ran.json["epsilon"] <= 2000


def test_the_mechanism_expected_to_do_best_is_used_and_named(dpselect: Callable[..., object], readings: Path) -> None:
    arguments = ("peak", readings, *COLUMNS, "--population", 20, "--epsilon", 10)
    chosen, forced = (dpselect(*arguments, *more, "--json").json for more in ((), ("--mechanism", "gaussian")))
    assert chosen["mechanism"] == "permute-and-flip"
    assert "expected to come closest" in chosen["reason"]
    assert chosen["advice"] is None
    assert forced["mechanism"] == "gaussian"
    assert forced["reason"] == "Gaussian noisy max, as asked."
    assert chosen["expected_shortfall"] < forced["expected_shortfall"] < chosen["guess_shortfall"]
    assert chosen["expected_hits"] > forced["expected_hits"] > chosen["guess_hits"]


def test_the_expectation_stands_beside_a_guess_on_screen_and_page(
    dpselect: Callable[..., object], readings: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    ran = dpselect("peak", readings, *COLUMNS, "--population", 20, "--epsilon", 1, "--report", page)
    assert "Expected: The largest " in " ".join(ran.out.split())
    assert "<dt>Expected</dt><dd>The largest " in page.read_text()
    for text in (" ".join(ran.out.split()), page.read_text()):
        assert "a guess that looks at no data: 3.2%, " in text
        assert "; supposing that values range over about 1.1 (over a tenth of that: right " in text


def test_an_answer_hardly_better_than_a_guess_is_not_paid_for(dpselect: Callable[..., object], readings: Path) -> None:
    arguments = ("peak", readings, *COLUMNS, "--population", 20, "--epsilon")
    refused = dpselect(*arguments, "1/100")
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err.count("\n") == 1
    assert "hardly be better than a guess" in refused.err
    assert "nothing was spent (--anyway to insist)" in refused.err
    enough = refused.err.partition("--epsilon ")[2].split()[0]
    answered = dpselect(*arguments, enough)
    assert answered.code == 0, "what is said to do does"
    doubt = "Probably not the largest: that is named "
    assert (answered.err.count(doubt), answered.out.count(doubt)) == (1, 1), answered.err
    assert dpselect(*arguments, enough, "--dry-run").err.count(doubt) == 1
    sure = dpselect(*arguments, answered.err.partition("--epsilon ")[2].split()[0])
    assert (sure.code, doubt in sure.err + sure.out) == (0, False), sure.err
    assert dpselect(*arguments, "1/100", "--anyway").code == 0


def test_with_a_tiny_epsilon_the_answer_is_anything(dpselect: Callable[..., object], readings: Path) -> None:
    """The negative control: noise is really added."""
    arguments = ("peak", readings, *COLUMNS, "--population", 20, "--epsilon", "1/10000", "--anyway", "--json")
    answers = Counter(dpselect(*arguments).json["answer"] for _ in range(12))
    assert len(answers) > 3


def test_a_better_mechanism_is_named_in_one_line(dpselect: Callable[..., object], readings: Path) -> None:
    arguments = ("peak", readings, *COLUMNS, "--population", 2000, "--epsilon", "0.1")
    ran = dpselect(*arguments, "--mechanism", "gaussian")
    assert sum("permute-and-flip is more accurate" in line for line in ran.err.splitlines()) == 1
    assert "more accurate" not in dpselect(*arguments, "--mechanism", "permute-and-flip").err


def test_a_seed_repeats_the_answer_and_is_called_not_private(
    dpselect: Callable[..., object], readings: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    arguments = ("peak", readings, *COLUMNS, "--population", 20, "--epsilon", "1/100", "--anyway", "--seed", 5)
    runs = [dpselect(*arguments, "--json", "--report", page.with_stem(f"page-{run}")) for run in range(3)]
    assert len({ran.json["answer"] for ran in runs}) == 1
    assert runs[0].json["noise"] == "reproducible"
    assert "not private" in runs[0].err
    assert "not private" in dpselect(*arguments).out
    assert "Not private." in page.with_stem("page-0").read_text()


def test_dry_run_reads_no_value(dpselect: Callable[..., object], tmp_path: Path) -> None:
    """Two tables with the same columns and different values have the same dry run, byte for byte."""
    shown = []
    for values in ("1", "999"):
        path = tmp_path / "readings.csv"
        path.write_text(f"meter,at,kwh\na,2013-01-03,{values}\n")
        ran = dpselect("peak", path, *COLUMNS, "--population", 20, "--epsilon", 1, "--dry-run", "--json")
        assert ran.code == 0
        shown.append(ran.out)
    assert shown[0] == shown[1]
    rows = [json.loads(line) for line in shown[0].splitlines()]
    assert [row["chosen"] for row in rows] == [False, True, False, False]
    assert all(row["epsilon"] <= 1 for row in rows)


def test_dry_run_still_finds_a_missing_column(dpselect: Callable[..., object], readings: Path) -> None:
    columns = [word if word != "kwh" else "kWh" for word in COLUMNS]
    ran = dpselect("peak", readings, *columns, "--population", 20, "--epsilon", 1, "--dry-run")
    assert ran.code == 2
    assert "no column 'kWh'" in ran.err


def test_sensitive_counts_are_shown_only_on_request_and_only_on_stderr(
    dpselect: Callable[..., object], readings: Path
) -> None:
    arguments = ("peak", readings, *COLUMNS, "--population", 20, "--epsilon", 1, "--json")
    assert "sensitive" not in dpselect(*arguments).err
    asked = dpselect(*arguments, "--show-sensitive")
    assert asked.err.startswith("sensitive: for the curator only") or "\nsensitive: for the curator only" in asked.err
    assert "rows: 620" in asked.err
    assert "620" not in asked.out


def test_categories_from_a_list_or_a_file(dpselect: Callable[..., object], tmp_path: Path) -> None:
    table = tmp_path / "sales.csv"
    table.write_text("who,product,eur\n" + "".join(f"p{n},{'tea' if n else 'milk'},9\n" for n in range(20)))
    names = tmp_path / "names.txt"
    names.write_text("milk\ntea\nbread\n")
    common = ("--user", "who", "--category", "product", "--value", "eur", "--cap", 10, "--population", 20)
    for listed in ("milk,tea,bread", f"@{names}"):
        ran = dpselect("peak", table, *common, "--categories", listed, "--epsilon", 2000, "--json")
        assert ran.json["answer"] == "tea"


def test_a_series_is_answered_when_the_curator_vouches(dpselect: Callable[..., object], tmp_path: Path) -> None:
    path = tmp_path / "days.csv"
    path.write_text("day,trips\n" + "".join(f"2011-01-{n:02d},{1000 if n == 9 else 10}\n" for n in range(1, 32)))
    common = ("peak", path, "--time", "day", "--value", "trips", "--maximum", 1000)
    calendar = ("--from", "2011-01-01", "--to", "2011-01-31", "--epsilon", 1)
    assert dpselect(*common, *calendar, "--population", 10**5, "--json").json["answer"] == "2011-01-09"
    told = dpselect(*common, *calendar, "--sensitivity", "1/100", "--monotone")
    assert "vouches" in told.out
    assert "A value above the maximum, 1000, would be cut to it" in " ".join(told.out.split())
    assert "persons" not in told.out  # nobody knows how many they are
    cut = dpselect("describe", *common[1:-1], 500, *calendar[:-2], "--population", 10**5)
    assert "1 totals are larger than --maximum 500 allows, and are cut to it" in cut.err
    refused = dpselect(*common, *calendar)
    assert refused.code == 2
    assert "--population or --sensitivity" in refused.err


def test_the_page_holds_the_answer_and_no_value(dpselect: Callable[..., object], tmp_path: Path) -> None:
    path = tmp_path / "secret.csv"
    path.write_text("meter,at,kwh\n" + "".join(f"a{n},2013-01-20,7.654321\n" for n in range(20)))
    page = tmp_path / "page.html"
    ran = dpselect("peak", path, *COLUMNS, "--population", 20, "--epsilon", 100, "--report", page)
    assert ran.code == 0, ran.err
    text = page.read_text()
    assert "2013-01-20" in text
    for private in ("7.654", "0.7654", "a13", str(tmp_path)):
        assert private not in text


def test_a_place_where_no_page_can_be_is_refused_before_asking(
    dpselect: Callable[..., object], readings: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    ran = dpselect(
        "peak", readings, *COLUMNS, "--population", 20, "--epsilon", 1, "--report", tmp_path / "file" / "page.html"
    )
    assert ran.code == 2
    assert ran.out == ""
    assert dpselect("peak", readings, *COLUMNS, "--population", 20, "--epsilon", 1, "--report", tmp_path).code == 2


def test_a_fault_shows_no_private_text(
    dpselect: Callable[..., object], readings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("home-7 used 9.0 kWh")

    monkeypatch.setattr("dpselect.dataset.rows.bounded_query", fails)
    ran = dpselect("peak", readings, *COLUMNS, "--population", 20, "--epsilon", 1)
    assert ran.code == 1
    assert "home-7" not in ran.err + ran.out
    assert ran.err.count("\n") == 1


def test_a_saved_plan_says_mechanism_noise_and_cost(
    dpselect: Callable[..., object], readings: Path, tmp_path: Path
) -> None:
    columns = {"user": "meter", "time": "at", "value": "kwh", "cap": 10, "population": 20}
    homes = dp.Dataset(readings, **columns, start="2013-01-01", end="2013-01-31")
    days = homes.candidates()
    place = homes.plan_peak(days, epsilon=100, mechanism="exponential").save(tmp_path / "plan.toml")
    asked = ("peak", readings, *COLUMNS, "--population", 20, "--plan", place)
    found = dpselect(*asked, "--json").json
    assert (found["mechanism"], found["epsilon"]) == ("exponential", 100)
    assert found["reason"] == "Exponential mechanism, as planned."
    fewer = dpselect(*asked, "--to", "2013-01-20", "--json").json
    assert fewer["epsilon"] <= 100
    assert fewer["scale"] == found["scale"]
    for option, said in (
        (("--epsilon", 1), "--epsilon does not go with --plan"),
        (("--top", 2), "--top does not go with --plan"),
        (("--population", 10), "but here it is up to 1;"),  # Δ is larger than the plan's
        (("--cap", 20), "make the plan again"),
    ):
        ran = dpselect(*asked, *option)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert said in ran.err, ran.err
    line = homes.plan_watch(days, threshold=5, budget=100).save(tmp_path / "line.toml")
    assert "use it with watch" in dpselect(*asked[:-1], line).err


def test_what_is_known_beforehand_sharpens_the_expectation(
    dpselect: Callable[..., object], readings: Path, tmp_path: Path
) -> None:
    asked = ("peak", readings, *COLUMNS, "--population", 20, "--epsilon", 40, "--dry-run", "--json")

    def hits(*more: object) -> float:
        records = [json.loads(line) for line in dpselect(*asked, *more).out.splitlines()]
        return next(one["expected_hits"] for one in records if one["chosen"])

    (tmp_path / "like.txt").write_text("\n".join(["1"] * 30 + ["9"]))
    assert hits("--range", 4, 4.5) < hits() < hits("--range", 0, 9)
    assert hits("--like", tmp_path / "like.txt", "--public") == 1.0
    shown = dpselect(*asked[:-2], "--range", 0, 9).out
    assert "for values between 0 and 9, as stated" in " ".join(shown.split())
    for option, said in (
        (("--like", tmp_path / "like.txt"), "declare them so with --public"),
        (("--expect", "10%"), "--expect does not go with a peak"),
        (("--range", 9, 1), "above"),
    ):
        ran = dpselect(*asked[:-2], *option)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert said in ran.err, ran.err


@pytest.mark.parametrize("every", ["hour", "hour-of-day"])
def test_hours_of_dates_alone_are_refused_before_anything_is_spent(
    dpselect: Callable[..., object], tmp_path: Path, every: str
) -> None:
    import pyarrow
    from pyarrow import parquet

    at = ["2013-01-01", "2013-01-02"]
    wide, dates, text = tmp_path / "wide.csv", tmp_path / "dates.parquet", tmp_path / "text.csv"
    wide.write_text("meter,2013-01-01,2013-01-02\na,1,2\n")
    columns = {"meter": ["a", "b"], "at": pyarrow.array(at).cast(pyarrow.date32()), "hr": [4, 5], "kwh": [1.0, 2.0]}
    parquet.write_table(pyarrow.table(columns), dates)
    text.write_text("meter,at,kwh\na,2013-01-01,1\n")
    asked = ("--user", "meter", "--cap", 9, "--population", 9, "--epsilon", 99, "--from", at[0], "--to", at[1])
    long = (*asked, "--time", "at", "--value", "kwh")
    ledger = ("--ledger", tmp_path / "a.ledger", "--total", 500)
    for rows, options in ((wide, (*asked, "--wide")), (dates, long), (text, (*long, "--time-format", "%Y-%m-%d"))):
        for asking in (ledger, ("--dry-run",), ("--epsilon", "0.01"), ("--cap-every", "day")):
            ran = dpselect("peak", rows, *options, "--every", every, *asking)
            assert (ran.code, "dates without an hour" in ran.err, "per day" in ran.err) == (2, True, True), ran.err
            assert ran.err.count("\n") == 1, ran.err  # nothing about accuracy before it
        assert dpselect("peak", rows, *options, "--every", "day").code == 0
    assert not (tmp_path / "a.ledger").exists() or dpselect("ledger", "history", tmp_path / "a.ledger").out == ""
    assert dpselect("peak", dates, *long, "--every", every, "--hour", "hr").code == 0
    # What the rows of a text column hold is private: it is said of every such answer alike.
    answered = dpselect("peak", text, *long, "--every", every)
    assert answered.code == 0
    assert "Times without an hour count as 00:00." in answered.out
    assert "Times without an hour" not in dpselect("peak", text, *long, "--every", "day").out


def test_a_plan_from_numbers_alone_fits_the_table_they_describe(
    dpselect: Callable[..., object], readings: Path, tmp_path: Path
) -> None:
    asked = ("peak", readings, *COLUMNS, "--population", 5566, "--anyway", "--json")
    job = ("plan", "--candidates", 31, "--epsilon", "0.1", "--monotone", "--save")
    # Δ of a table is 1/N and what writing doubles adds; a plan may be in the readings' unit, too.
    for name, values in (
        ("a.toml", ("--sensitivity", "1/5566")),
        ("b.toml", ("--upper", 10, "--sensitivity", "10/5566")),
    ):
        assert dpselect(*job, tmp_path / name, *values).code == 0
        found = dpselect(*asked, "--plan", tmp_path / name)
        assert (found.code, found.json["epsilon"]) == (0, 0.1), found.err
        promised = (tmp_path / name).read_text()
        (tmp_path / name).write_text(promised.replace("epsilon = 0.09999999999999999", "epsilon = 0.05"))
        assert "its noise costs" in dpselect(*asked, "--plan", tmp_path / name).err  # what is no rounding


def test_a_cap_for_a_day_asked_for_hours_is_named_before_anything_is_paid(
    dpselect: Callable[..., object], tmp_path: Path
) -> None:
    rows = tmp_path / "hours.csv"
    lines = [
        f"home-{home},2013-01-01 {hour:02d}:00,{9 if hour == 18 else 1}" for home in range(9) for hour in range(24)
    ]
    rows.write_text("\n".join(["meter,at,kwh", *lines]) + "\n")
    asked = ("peak", rows, *COLUMNS, "--population", 9, "--unit", "kWh", "--epsilon", 100, "--every", "hour-of-day")
    long = dpselect(*asked, "--cap-every", "day", "--json")
    said = "the cap of 10 kWh is for a day, and one hour takes it whole, with up to 24 times the noise needed"
    assert said in long.err.splitlines()[0], long.err
    assert "give such as --cap 1 --cap-every hour" in long.err
    right = dpselect(*asked, "--cap-every", "hour", "--json")
    assert "takes it whole" not in right.err
    # What is expected is that of an hour under a day's cap: far less than under its own.
    assert long.json["expected_hits"] < right.json["expected_hits"] - 0.2
    refused = dpselect(*asked[:-3], 0.5, *asked[-2:], "--cap-every", "day")
    assert (refused.code, "give such as --cap 1 --cap-every hour; nothing was spent" in refused.err) == (2, True)


def test_a_ranking_of_which_most_would_be_wrong_is_not_paid_for(
    dpselect: Callable[..., object], readings: Path
) -> None:
    asked = ("peak", readings, *COLUMNS, "--population", 2000, "--top", 5, "--json")
    refused = dpselect(*asked, "--epsilon", 0.05)
    assert refused.code == 2
    assert "fewer than half of the 5 named would belong there" in refused.err
    assert "would do on such data" in refused.err
    wanted = refused.err.partition("--epsilon ")[2].partition(" ")[0]
    enough = dpselect(*asked, "--epsilon", wanted)
    assert enough.json["expected_overlap"] >= 0.5, enough.err
    insisted = dpselect(*asked, "--epsilon", 0.05, "--anyway")
    assert insisted.json["expected_overlap"] < 0.5
    told = dpselect(*asked[:-1], "--epsilon", wanted)
    assert "Places are uncertain" in told.out
    assert "named, " in " ".join(told.out.split())


def test_a_dry_run_says_how_much_noise_values_have_and_what_would_be_left(
    dpselect: Callable[..., object], readings: Path
) -> None:
    ledger = readings.parent / "x.ledger"
    asked = ("peak", readings, *COLUMNS, "--population", 20, "--unit", "kWh", "--epsilon", 10)
    kept = (*asked, "--ledger", ledger, "--total", 25)
    absent = dpselect(*kept, "--dry-run")
    assert (absent.code, ledger.exists()) == (0, False)  # a dry run makes none
    assert dpselect("ledger", "create", ledger, "--dataset", "homes", "--total", 25).code == 0
    assert dpselect(*kept).code == 0
    dry = dpselect(*kept, "--how-much", "--dry-run")
    assert "Ledger: 15 of 25 left, 5 after this" in dry.err
    assert "How much: each value comes with ± 0." in dry.err
    assert " kWh, which holds 95 times of 100" in dry.err
    assert "too little for this" in dpselect(*kept, "--dry-run", "--from", "2013-01-02", "--epsilon", 20).err
    margin = [one["amount_margin"] for one in dpselect(*asked, "--how-much", "--dry-run", "--json").lines]
    assert margin[0] == dpselect(*asked, "--how-much", "--json").json["amount_margin"]


@pytest.mark.parametrize(("kwh", "said"), [(0, True), (10, True), (5, False)])
def test_a_value_at_an_end_of_its_range_is_called_so(
    dpselect: Callable[..., object], tmp_path: Path, kwh: int, said: bool
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("meter,at,kwh\n" + "".join(f"home-{home},2013-01-20,{kwh}\n" for home in range(20)))
    asked = ("peak", rows, *COLUMNS, "--population", 20, "--epsilon", 20, "--how-much")
    told = [" ".join(dpselect(*asked, "--seed", seed).out.split()) for seed in range(12)]
    # Noise takes a value at an end beyond it half of the time, where it is cut.
    assert any("is an end of the range: check cap, population and dates" in one for one in told) == said


def test_a_file_that_is_not_there_is_named_before_its_columns(dpselect: Callable[..., object], tmp_path: Path) -> None:
    ran = dpselect("peak", tmp_path / "missing.csv.gz", "--epsilon", ".1")
    assert (ran.code, "no file matches" in ran.err, "--user" in ran.err) == (2, True, False), ran.err


def test_an_epsilon_is_no_percentage(dpselect: Callable[..., object], readings: Path) -> None:
    ran = dpselect("peak", readings, *COLUMNS, "--population", 20, "--epsilon", "10%")
    assert (ran.code, "not a percentage: 0.1? Nothing was spent" in ran.err) == (2, True), ran.err
    with pytest.raises(InvalidParameter, match=r"epsilon must be a number such as 0\.1, not a text"):
        dp.Dataset(readings, user="meter", time="at", value="kwh", cap=10, population=20).peak(
            epsilon="10%", start="2013-01-01", end="2013-01-31"
        )
