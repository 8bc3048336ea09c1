"""The page: complete in itself, and what users write in it stays text."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import files
from dpselect.errors import SourceError
from dpselect.report.guarantee import Guarantee
from dpselect.report.page import html_page, inline_svg, write_page
from dpselect.report.plots import charged_chart, svg
from dpselect.report.record import Charged, Finding, Report, Spending
from dpselect.report.words import print_report


def told(text: str = "x", *, noise: str = "private", simulated: bool = False) -> Report:
    return Report(
        title=text,
        findings=(
            Finding(
                question=text,
                answer=text,
                details=((text, text), ("list", f"{text}, {text}")),
                spending=Spending(spent=(0.1, 0.2), above=(1,), budget=1.0),
                figure='<svg viewBox="0 0 1 1"><path d="M0 0"/></svg>',
                caption=text,
            ),
        ),
        guarantee=Guarantee(epsilon=0.1, noise=noise),  # type: ignore[arg-type]
        parameters=((text, text),),
        notes=(text,),
        simulated=simulated,
    )


class Tags(HTMLParser):
    """Every tag and attribute of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if (tag, attrs) == ("span", [("class", "item")]):
            return  # around short items of a list only
        self.tags.append(tag)
        self.attributes += attrs


ORDINARY = Tags(html_page(told()))


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "</style><script>alert(1)</script>",
        "</title><svg onload=alert(1)>",
        "<!-- ",
        "&lt;script&gt;",
        "' onmouseover='alert(1)",
    ],
)
def test_what_a_user_writes_stays_text(attack: str) -> None:
    page = Tags(html_page(told(attack)))
    assert page.tags == ORDINARY.tags
    assert page.attributes == ORDINARY.attributes


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=60))
def test_no_text_changes_the_structure(text: str) -> None:
    page = Tags(html_page(told(text)))
    assert page.tags == ORDINARY.tags
    assert page.attributes == ORDINARY.attributes


def test_the_page_asks_for_nothing_from_outside() -> None:
    page = html_page(told())
    assert "script" not in Tags(page).tags
    assert not re.search(r"(?:src|href|url)\s*[=(]\s*[\"']?(?:https?:)?//", page)
    assert "default-src 'none'" in page


def test_a_seed_raises_a_banner_and_its_absence_does_not() -> None:
    assert "Not private." in html_page(told(noise="reproducible"))
    assert "Not private." not in html_page(told())
    assert "Simulated data." in html_page(told(simulated=True))
    assert "Simulated data." not in html_page(told())


def test_the_page_tells_question_answer_guarantee_and_parameters() -> None:
    page = html_page(told("unmistakable"))
    assert page.count("unmistakable") >= 8
    assert "pure ε = 0.1" in page
    assert "1.106" in page
    assert "Spent ε = 0.2 of 1" in page


@pytest.mark.parametrize(
    "drawing", ["<svg><script>1</script></svg>", '<svg><path onload="x"/></svg>', "no drawing", "<svg"]
)
def test_a_figure_with_scripts_is_refused(drawing: str) -> None:
    with pytest.raises(SourceError):
        inline_svg(drawing)


def test_writing_replaces_the_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    files.check(path, files.PAGE)
    assert not path.exists()
    write_page(told("first"), path)
    write_page(told("second"), path)
    assert "second" in path.read_text()
    assert [entry.name for entry in path.parent.iterdir()] == ["page.html"]


def test_a_place_that_cannot_hold_a_page_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "page.html", tmp_path):
        with pytest.raises(SourceError, match="choose another place"):
            files.check(place, files.PAGE)
        with pytest.raises(SourceError, match="choose another place"):
            write_page(told(), place)


def test_text_shows_markup_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(told("[bold red]not a colour[/] [link=http://x]y[/link]"))
    shown = " ".join(capsys.readouterr().out.split())
    assert "[bold red]not a colour[/] [link=http://x]y[/link]" in shown


def test_text_warns_of_a_seed_first(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(told(noise="reproducible"))
    assert capsys.readouterr().out.startswith("A seed was used")


def test_a_seeded_page_states_no_promise(capsys: pytest.CaptureFixture[str]) -> None:
    seeded, private = html_page(told(noise="reproducible")), html_page(told())
    assert "What is promised to each person" in private
    assert "What is promised to each person" not in seeded
    assert "With private noise this would hold" in seeded
    assert "How sure may the answer make them" not in seeded
    print_report(told(noise="reproducible"))
    assert "Guarantee: none" in capsys.readouterr().out


@pytest.mark.parametrize("hours", [0.1, 1, 50, 73, 100, 150, 24 * 11, 24 * 44, 24 * 60, 24 * 400])
def test_dates_below_a_ledgers_drawing_do_not_overlap_on_a_telephone(hours: float) -> None:
    first = datetime(2026, 1, 20, 9, 30, tzinfo=UTC)
    at = tuple((first + timedelta(hours=share * hours)).isoformat() for share in (0.0, 0.4, 1.0))
    drawing = svg(charged_chart(Charged(at=at, spent=(0.0, 0.5, 1.0), total=2.0)))
    named = re.findall(r'<text x="([\d.]+)" y="236.0" text-anchor="(\w+)">([\d: -]+)<', drawing)
    assert len(named) >= 2, drawing
    ends = []
    for x, anchor, words in named:
        wide = 22 * 0.58 * len(words)  # letters of 22 px, as the style sheet has them there
        begin = float(x) - wide * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        ends.append((begin, begin + wide))
    assert all(one[1] < other[0] for one, other in itertools.pairwise(ends)), named
