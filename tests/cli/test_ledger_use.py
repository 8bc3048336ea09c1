"""``peak`` and ``watch`` on a ledger: charged before the table is read, answered once, refused when it does not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dpselect import Dataset
from dpselect.errors import InvalidData, InvalidParameter
from dpselect.ledger import Ledger, PrivacyUnit, Total
from dpselect.ledger.amounts import PER_EPSILON

JANUARY = ["--user", "meter", "--time", "at", "--value", "kwh", "--cap", "50", "--population", "20", "--from",
           "2013-01-01", "--to", "2013-01-31"]  # fmt: skip


METERS = PrivacyUnit(user="meter", adjacency="add-remove")


@pytest.fixture
def ask(dpselect: Callable[..., object], readings: Path, tmp_path: Path) -> Callable[..., object]:
    Ledger.create(tmp_path / "homes.ledger", dataset="homes", total=Total.pure(100), unit=METERS).close()

    def run(verb: str, *options: object) -> object:
        return dpselect(verb, readings, *JANUARY, "--ledger", tmp_path / "homes.ledger", *options)

    return run


def test_a_story_of_three_questions(ask: Callable[..., object], tmp_path: Path) -> None:
    first = ask("peak", "--epsilon", 40, "--anyway", "--json")
    assert first.code == 0, first.err
    assert (first.json["ledger_entry"], first.json["repeated"]) == (2, False)
    again = ask("peak", "--epsilon", 40, "--anyway", "--json").json
    assert (again["answer"], again["ledger_entry"], again["repeated"]) == (first.json["answer"], 2, True)
    assert ask("peak", "--epsilon", 40, "--anyway", "--afresh", "--json").json["ledger_entry"] == 4
    refused = ask("peak", "--epsilon", 30, "--anyway")
    assert refused.code == 3
    assert "does not fit" in refused.err
    with Ledger.open(tmp_path / "homes.ledger") as ledger:
        assert 70 < ledger.balance().spent <= 80
        assert ledger.verify().holds
        assert str(tmp_path) not in "".join(entry.body for entry in ledger.entries())


def test_a_watch_is_charged_a_stretch_at_a_time_and_settled_at_its_cost(
    ask: Callable[..., object], tmp_path: Path
) -> None:
    ran = ask("watch", "--threshold", 25, "--clip", 25, "--anyway", "--budget", 60, "--json")
    assert ran.code in (0, 3), ran.err
    last = ran.lines[-1]
    assert (last["ledger_entry"], last["repeated"]) == (2, 0)
    with Ledger.open(tmp_path / "homes.ledger") as ledger:
        assert last["spent"] <= ledger.balance().spent <= min(60, last["spent"] + 1e-12)
        entries = list(ledger.entries())
    assert sum(entry.kind == "reserve" for entry in entries) > 1
    assert all(entry.amounts.epsilon < 20 * PER_EPSILON for entry in entries if entry.kind == "reserve")


def test_a_watch_asked_again_is_repeated_and_costs_nothing(ask: Callable[..., object], tmp_path: Path) -> None:
    options = ["watch", "--threshold", 25, "--clip", 25, "--anyway", "--budget", 60, "--json"]
    first = ask(*options)
    with Ledger.open(tmp_path / "homes.ledger") as ledger:
        before = ledger.balance()
    again = ask(*options)
    assert [(line["period"], line["answer"]) for line in again.lines[:-1]] == [
        (line["period"], line["answer"]) for line in first.lines[:-1]
    ]
    assert again.code == first.code
    assert again.lines[-1]["repeated"] == first.lines[-1]["questions"] > 0
    assert again.lines[-1]["spent"] == first.lines[-1]["spent"]
    with Ledger.open(tmp_path / "homes.ledger") as ledger:
        assert ledger.balance() == before
    paid = ask("watch", "--threshold", 25, "--clip", 25, "--anyway", "--budget", 30, "--key", "second", "--json")
    assert paid.lines[-1]["repeated"] == 0
    afresh = ask("watch", "--threshold", 25, "--clip", 25, "--anyway", "--budget", 1, "--afresh", "--json")
    assert afresh.lines[-1]["repeated"] == 0
    assert "repeated" in ask("watch", "--threshold", 25, "--clip", 25, "--anyway", "--budget", 60).out


def test_a_table_that_cannot_be_read_costs_nothing(dpselect: Callable[..., object], tmp_path: Path) -> None:
    place = tmp_path / "homes.ledger"
    ran = dpselect("peak", tmp_path / "gone.csv", *JANUARY, "--ledger", place, "--total", 9, "--epsilon", 5, "--anyway")
    assert ran.code == 2
    assert not place.exists()


def test_columns_that_are_not_there_cost_nothing(
    dpselect: Callable[..., object], readings: Path, tmp_path: Path
) -> None:
    mistyped = ["kw" if option == "kwh" else option for option in JANUARY]
    for verb in (["peak", "--epsilon", 5], ["watch", "--threshold", 25, "--budget", 5]):
        place = tmp_path / f"{verb[0]}.ledger"
        ran = dpselect(verb[0], readings, *mistyped, "--ledger", place, "--total", 9, *verb[1:], "--anyway")
        assert ran.code == 2
        assert ran.err.rstrip().endswith("; nothing was spent")
        assert "holds" not in ran.err


WEB = ["--user", "visitor", "--category", "page", "--measure", "count", "--population", 200, "--anyway"]


@pytest.fixture
def web(tmp_path: Path) -> Path:
    rows = [f"p{number},{'/login' if number < 190 else 'other'}\n" for number in range(200)]
    (tmp_path / "web.csv").write_text("visitor,page\n" + "".join(rows))
    return tmp_path / "web.csv"


@pytest.mark.parametrize("more", [[], ["--top", 2, "--how-much"]])
def test_names_like_paths_are_answered_and_not_written(
    dpselect: Callable[..., object], web: Path, tmp_path: Path, more: list[object]
) -> None:
    place = tmp_path / "web.ledger"
    assert dpselect("ledger", "create", place, "--dataset", "web", "--total", 60).code == 0
    asked = ["peak", web, *WEB, "--categories", "/login,other", "--epsilon", 40, "--ledger", place, "--json", *more]
    first = dpselect(*asked, "--total", 60)
    assert first.code == 0, first.err
    assert first.json["answer"] == "/login"
    again = dpselect(*asked).json
    assert again["repeated"]
    for part in ("answer", "answers", "indices", "amounts"):
        assert again.get(part) == first.json.get(part)
    with Ledger.open(place) as ledger:
        assert ledger.balance().spent <= 40.000001
        assert "login" not in "".join(entry.body for entry in ledger.entries())
        assert ledger.verify().holds


@pytest.mark.slow
def test_an_answer_that_may_not_fit_an_entry_is_refused_before_the_charge(tmp_path: Path) -> None:
    import pyarrow

    names = [f"{number:05}" for number in range(12_000)]
    rows = pyarrow.table({"visitor": ["a"], "page": [names[0]]})
    with Ledger.create(tmp_path / "web.ledger", dataset="web", total=Total.pure(9.0)) as ledger:
        web = Dataset(
            rows, user="visitor", category="page", measure="count", population=9, categories=names, ledger=ledger
        )
        with pytest.raises(InvalidParameter, match=r"smaller top; nothing was spent"):
            web.peak(epsilon=5, top=12_000, mechanism="exponential", anyway=True)
        assert ledger.balance().spent == 0
        long = web.peak(epsilon=5, top=6_000, mechanism="exponential", anyway=True)
        assert [names[index] for index in long.indices] == list(long.labels)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("dpselect.dataset.peak._draw", "the answer is lost and the ledger keeps its ε = 40"),
        ("dpselect.dataset.rows.read", "the ledger holds up to ε = 40 for it"),
    ],
)
def test_after_the_charge_a_refusal_says_what_the_ledger_holds(
    ask: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, said: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise InvalidData("a value cannot be used")

    with monkeypatch.context() as patch:
        patch.setattr(where, fail)
        ran = ask("peak", "--epsilon", 40, "--anyway", "--total", 100)
    assert ran.code == 2
    assert said in ran.err
    assert "nothing was spent" not in ran.err
    with Ledger.open(tmp_path / "homes.ledger") as ledger:
        assert 39 < ledger.balance().spent <= 40
    again = ask("peak", "--epsilon", 40, "--anyway")
    if "lost" in said:
        assert again.code == 2
        assert "ask --afresh or with another --key, and pay again; nothing was spent now" in again.err
        again = ask("peak", "--epsilon", 40, "--anyway", "--afresh")
    assert again.code == 0, again.err


@pytest.mark.parametrize(
    ("where", "said", "charged"),
    [
        ("dpselect.dataset.rows.check", "nothing was spent", 0),
        ("dpselect.ledger.book.Book.reserve", "nothing was spent", 0),
        ("dpselect.dataset.rows.read", "the ledger holds up to ε = 40 for it until it is asked again", 40),
        ("dpselect.dataset.peak._draw", "the ledger holds up to ε = 40 for it until it is asked again", 40),
        ("dpselect.ledger.book.Book.settle", "the ledger holds up to ε = 40 for it until it is asked again", 40),
        ("dpselect.cli.asking._show_answer", "its answer is in the ledger, and asking again costs nothing", 40),
    ],
)
def test_an_interruption_says_what_the_ledger_has(
    ask: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, said: str, charged: int
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    assert ask("peak", "--epsilon", 1, "--anyway", "--total", 100).code == 0
    with monkeypatch.context() as patch:
        patch.setattr(where, interrupt)
        ran = ask("peak", "--epsilon", 40, "--anyway")
    assert (ran.code, ran.err) == (130, f"error: interrupted; {said}\n")
    with Ledger.open(tmp_path / "homes.ledger") as ledger:
        assert charged <= ledger.balance().spent <= charged + 1
    again = ask("peak", "--epsilon", 40, "--anyway")
    assert again.code == 0
    assert "59 of 100 left, 1 more like this" in again.err
    with Ledger.open(tmp_path / "homes.ledger") as ledger:
        assert ledger.balance().spent <= 41, "and it is paid once"


def test_a_ledger_that_goes_away_is_one_line_and_counts(
    ask: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> None:
        (tmp_path / "homes.ledger").rename(tmp_path / "elsewhere")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dpselect.dataset.rows.read", gone)
        ran = ask("peak", "--epsilon", 40, "--anyway", "--total", 100)
    assert ran.code == 130
    assert ran.err == "error: interrupted; count ε = 40 as spent, for the ledger cannot be looked at\n"


def test_a_total_is_chosen_once(ask: Callable[..., object]) -> None:
    ask("peak", "--epsilon", 40, "--anyway", "--total", 100)
    ran = ask("peak", "--epsilon", 40, "--anyway", "--total", 200)
    assert ran.code == 2
    assert "--total must be left out" in ran.err


def test_an_answer_without_a_ledger_says_that_nothing_remembers_it(
    dpselect: Callable[..., object], readings: Path
) -> None:
    assert "No ledger remembers this answer" in dpselect("peak", readings, *JANUARY, "--epsilon", 40, "--anyway").out
    ran = dpselect("peak", readings, *JANUARY, "--epsilon", 40, "--anyway", "--key", "x")
    assert ran.code == 2


def test_seeded_answers_do_not_enter_a_ledger(ask: Callable[..., object], tmp_path: Path) -> None:
    assert ask("peak", "--epsilon", 40, "--anyway", "--total", 100, "--seed", 1).code == 2
    with Ledger.open(tmp_path / "homes.ledger") as ledger:
        assert ledger.balance().anchor.number == 1


def test_from_python(readings: Path, tmp_path: Path) -> None:
    Ledger.create(tmp_path / "homes.ledger", dataset="homes", total=Total.pure(100), unit=METERS).close()
    homes = Dataset(
        str(readings), user="meter", time="at", value="kwh", cap=50, population=20,
        total=100.0, ledger=tmp_path / "homes.ledger",
    )  # fmt: skip
    first = homes.peak(epsilon=40, start="2013-01-01", end="2013-01-31", anyway=True)
    assert first.entry == 2
    assert homes.peak(epsilon=40, start="2013-01-01", end="2013-01-31", anyway=True).repeated
    assert homes.spent <= 40
    assert homes.book is not None
    homes.book.close()
    with pytest.raises(InvalidParameter, match="key"):
        Dataset(str(readings), user="meter", time="at", value="kwh", cap=50, population=20).peak(
            epsilon=40, start="2013-01-01", end="2013-01-31", anyway=True, key="x"
        )


def test_a_data_set_file_charges_its_ledger_without_being_told(
    dpselect: Callable[..., object], readings: Path, tmp_path: Path
) -> None:
    assert dpselect("describe", readings, *JANUARY, "--write", tmp_path / "homes.toml", "--total", 100).code == 0
    homes, place = tmp_path / "homes.toml", tmp_path / "homes.ledger"
    peak = dpselect("peak", homes, "--epsilon", 30, "--anyway")
    watch = dpselect("watch", homes, "--threshold", 25, "--budget", 20)
    for ran in (peak, watch):
        assert "No ledger remembers" not in ran.out
        assert "Ledger entry" in ran.out
    opened = Dataset.open(homes)
    assert opened.peak(epsilon=30, anyway=True).repeated
    with Ledger.open(place) as ledger:
        assert ledger.balance().spent == opened.spent > 30
    assert dpselect("peak", homes, "--epsilon", 90, "--anyway").code == 3
    assert opened.book is not None
    opened.book.close()
    place.unlink()
    gone = dpselect("peak", homes, "--epsilon", 30, "--anyway")
    assert gone.code == 2
    assert not place.exists(), "a ledger that has gone is not made anew, with a full budget"
