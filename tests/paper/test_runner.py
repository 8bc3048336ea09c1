"""One call gives every figure and a page that needs nothing else; a second call computes nothing twice."""

from __future__ import annotations

import io
import multiprocessing
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from dpselect.errors import InvalidParameter, SourceError
from lebensold2024 import FIGURES, run, runner
from lebensold2024.datasets import Series
from lebensold2024.figure import TINY, Part, Row
from lebensold2024.work import Piece

pytestmark = pytest.mark.slow


def test_every_figure_and_table_is_written(tiny_run: Path) -> None:
    for name in FIGURES:
        assert (tiny_run / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tiny_run / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        assert len(pd.read_csv(tiny_run / "tables" / f"{name}.csv")) > 0


def test_the_page_needs_nothing_else(tiny_run: Path) -> None:
    page = (tiny_run / "report.html").read_text()
    sources = re.findall(r"(?:src|href)=\"([^\"]{0,30})", page)
    assert sources
    assert all(source.startswith(("data:", "#")) for source in sources)
    assert "<script" not in page
    assert "@import" not in page
    assert page.count("data:image/png;base64,") == len(FIGURES)


def test_the_page_says_that_data_were_simulated_and_judges_no_claim_on_them(tiny_run: Path) -> None:
    assert "Simulated data" in (tiny_run / "report.html").read_text()
    verdicts = pd.read_csv(tiny_run / "tables" / "claims.csv")
    about_data = verdicts[verdicts["where"].str.contains("NEAR|LCL|UCI")]
    assert set(about_data["verdict"]) == {"not judged: simulated data"}
    assert {"held", "did not hold"} <= set(verdicts["verdict"])


def test_a_second_run_computes_nothing_and_gives_the_same_tables(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "again"
    kept.mkdir()
    (kept / "cache").symlink_to(tiny_run / "cache")
    for name in ("heatmap-max", "online-lcl"):
        monkeypatch.setitem(FIGURES, name, replace(FIGURES[name], measure=_never))
    run(["heatmap-max", "online-lcl"], out=kept, size=TINY, jobs=1)
    for name in ("heatmap-max", "online-lcl"):
        assert (kept / "tables" / f"{name}.csv").read_bytes() == (tiny_run / "tables" / f"{name}.csv").read_bytes()
    with pytest.raises(AssertionError, match="computed again"):
        run(["heatmap-max"], out=tmp_path / "elsewhere", size=TINY, jobs=1)


def _never(part: Part, series: Series | None = None) -> list[Row]:
    raise AssertionError(f"{part} was computed again")


def test_a_stopped_run_keeps_what_it_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Part] = []
    figure = FIGURES["online-lcl"]

    def until_third(part: Part, series: Series) -> Iterable[Row]:
        calls.append(part)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return figure.measure(part, series)

    monkeypatch.setitem(FIGURES, "online-lcl", replace(figure, measure=until_third))
    with pytest.raises(KeyboardInterrupt):
        run(["online-lcl"], out=tmp_path, size=TINY, jobs=1)
    assert len(list((tmp_path / "cache").glob("*.parquet"))) == 2
    run(["online-lcl"], out=tmp_path, size=TINY, jobs=1)
    assert len(calls) == 5  # the third of four twice


def kept_piece(folder: Path, table: pd.DataFrame) -> Piece:
    piece = Piece("spend-uci", _never, {"series": "uci", "fingerprint": "a"})
    piece.keep(table, folder)
    return piece


def test_other_parameters_and_other_data_are_not_taken_from_the_cache(tmp_path: Path) -> None:
    piece = kept_piece(tmp_path, pd.DataFrame({"x": [1.0]}))
    assert piece.kept(tmp_path) is not None
    assert piece._replace(part={**piece.part, "fingerprint": "b"}).kept(tmp_path) is None
    assert piece._replace(figure="spend-lcl").kept(tmp_path) is None


def test_a_kept_table_is_exactly_the_one_computed(tmp_path: Path) -> None:
    table = FIGURES["loss-threshold"].compute(TINY)
    pd.testing.assert_frame_equal(kept_piece(tmp_path, table).kept(tmp_path), table, check_exact=True)


@pytest.mark.parametrize("left", [b"", b"PAR1 cut short"])
def test_a_damaged_part_is_computed_again(tmp_path: Path, left: bytes) -> None:
    piece = kept_piece(tmp_path, pd.DataFrame({"x": [1.0]}))
    assert piece.kept(tmp_path) is not None
    piece.path(tmp_path).write_bytes(left)
    assert piece.kept(tmp_path) is None


def test_a_worker_ended_from_outside_is_one_clear_line_and_costs_nothing_finished(tmp_path: Path) -> None:
    def end_workers(figure: str, done: int, total: int) -> None:
        for child in multiprocessing.active_children() if done else ():
            child.kill()

    with pytest.raises(SourceError, match=r"a worker was ended from outside.*run again to continue"):
        run(["online-lcl"], out=tmp_path, size=TINY, jobs=2, progress=end_workers)
    assert list((tmp_path / "cache").glob("*.parquet"))


def test_processes_give_what_one_process_gives(tiny_run: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    run(["online-lcl"], out=tmp_path, size=TINY, jobs=2, progress=lambda *step: seen.append(step))
    name = "tables/online-lcl.csv"
    assert (tmp_path / name).read_bytes() == (tiny_run / name).read_bytes()
    assert [done for _, done, _ in seen] == [0, 1, 2, 3, 4]
    assert {total for _, _, total in seen} == {4}


def test_redirected_progress_is_lines_and_a_page_of_one_figure_holds_its_claims_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = run(["loss-threshold"], out=tmp_path, size=TINY, jobs=1, progress="rich").read_text()
    assert "Halting after two steps" in page
    assert set(pd.read_csv(tmp_path / "tables" / "claims.csv")["where"]) == {"Section 3.3, caption of loss against ρ"}
    # Captured output is no terminal: lines, not a bar.
    shown = capsys.readouterr().err
    assert shown.splitlines()[0] == "0 of 1 parts done, 0 s (from the cache)"
    assert shown.splitlines()[-1].startswith("1 of 1 parts done")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"figures": ["heatmap"]}, InvalidParameter, "figure must be one of epsilon-candidates"),
        ({"figures": []}, InvalidParameter, "at least one name"),
        ({"jobs": 0}, InvalidParameter, "jobs must be"),
        ({"data": "nowhere-at-all"}, SourceError, "does not exist"),
        ({"figures": ["loss-threshold"], "progress": "loud"}, InvalidParameter, "progress must be"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(
    tmp_path: Path, arguments: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run(**arguments, out=tmp_path, size=TINY)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_claims_about_real_data_are_judged(real_data: Path) -> None:
    near = FIGURES["offline-near"].compute(TINY, data=real_data)
    verdicts = runner.judge({"offline-near": near}).set_index("claim")["verdict"]
    assert verdicts.loc["90% accuracy would need over double the privacy budget without the pure bound."] == "held"
    assert "not judged: simulated data" not in set(verdicts)


@pytest.mark.slow
def test_the_quick_run_on_real_data_judges_every_claim(real_data: Path, tmp_path: Path) -> None:
    run(out=tmp_path, data=real_data, quick=True)
    verdicts = pd.read_csv(tmp_path / "tables" / "claims.csv")
    assert set(verdicts["verdict"]) == {"held", "did not hold", "depends"}
    found = verdicts.set_index("claim")["verdict"]
    assert found.loc["Gaussian noise with the pure bound clearly improves on Laplace noisy max."] == "depends"
    assert found.loc["A clear separation occurs over the noise multipliers shown, σ_X ∈ [.09, .15]."] == "depends"


def test_the_bar_counts_parts_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    run(["heatmap-max"], out=tmp_path, size=TINY, jobs=1, progress="rich")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.getvalue())
    assert "1/1 parts" in text
    assert "left" in text


def test_a_strangers_page_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("<p>my holiday</p>")
    with pytest.raises(SourceError, match="no report of dpselect"):
        run(["loss-threshold"], out=tmp_path, size=TINY, jobs=1)
    assert (tmp_path / "report.html").read_text() == "<p>my holiday</p>"
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_place_that_cannot_be_a_folder_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "below", Path("/proc/nowhere/paper")):
        with pytest.raises(SourceError, match="cannot write the figures to") as refusal:
            run(["loss-threshold"], out=place, size=TINY, jobs=1)
        assert "\n" not in str(refusal.value)


# A shell may have started the suite with interruptions ignored, which children inherit: take that back first.
SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from lebensold2024 import run
from lebensold2024.figure import FULL
if __name__ == "__main__":
    run(["monte-carlo"], out=sys.argv[1], size=FULL, jobs=2, progress="rich")
"""


@pytest.mark.parametrize(
    ("signal_", "code"),
    [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_a_stopped_run_ends_its_workers_and_says_how_to_go_on(tmp_path: Path, signal_: int, code: int) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "out")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        assert running.stderr is not None
        first = running.stderr.readline()
        assert "of 24 parts done" in first
        deadline = time.monotonic() + 120
        while len(_group(running.pid)) < 3 and time.monotonic() < deadline:
            time.sleep(0.2)
        running.send_signal(signal_)
        said = running.stderr.read()
        assert running.wait(120) == code
    # A killed process prints nothing; the workers end all the same.
    assert ("parts done and kept; run again to continue." in said) == (signal_ != signal.SIGKILL)
    deadline = time.monotonic() + 120
    while _group(running.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _group(running.pid) == []


def _group(session: int) -> list[int]:
    """Processes of a session that are still at work."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(folder.name))
    return found
