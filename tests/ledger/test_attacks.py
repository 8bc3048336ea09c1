"""Attempts to spend more than there is, by files, names, keys and timing: each is refused, or shows."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpselect.errors import BudgetExhausted, DPSelectError, LedgerError
from dpselect.ledger import Ledger, Total, filter_on
from dpselect.ledger.wording import key_of


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "homes.ledger"


@pytest.fixture
def on_disk(file: Path) -> Iterator[Ledger]:
    with Ledger.create(file, dataset="homes", total=Total.pure(1.0), patience=2.0) as made:
        made.ask({"question": 1}, cost=0.25, draw=lambda: "x")
        yield made


def never() -> None:
    pytest.fail("data was touched")


class TestFiles:
    def test_a_hard_link_is_refused_under_both_names(self, on_disk: Ledger, file: Path, tmp_path: Path) -> None:
        """SQLite would keep a log for each name, and neither would know of the other's charges."""
        os.link(file, tmp_path / "second.ledger")
        for name in ("second.ledger", "homes.ledger"):
            with pytest.raises(LedgerError, match="second name"):
                Ledger.open(tmp_path / name)

    def test_a_link_to_a_ledger_is_that_ledger(self, on_disk: Ledger, file: Path, tmp_path: Path) -> None:
        folder = tmp_path / "elsewhere"
        folder.mkdir()
        (folder / "link.ledger").symlink_to(file)
        with Ledger.open(folder / "link.ledger") as linked:
            linked.ask({"question": 2}, cost=0.5, draw=lambda: "y")
            assert on_disk.balance().spent == 0.75
            assert list(folder.iterdir()) == [folder / "link.ledger"], "no second log beside the link"

    def test_a_link_that_is_turned_to_a_copy_is_refused(self, on_disk: Ledger, file: Path, tmp_path: Path) -> None:
        link, copy = tmp_path / "link.ledger", tmp_path / "copy.ledger"
        link.symlink_to(file)
        with Ledger.open(link) as linked:
            shutil.copy2(file, copy)
            link.unlink()
            link.symlink_to(copy)
            with pytest.raises(LedgerError, match="moved or replaced"):
                linked.ask({"question": 2}, cost=0.5, draw=never)

    def test_nothing_is_made_through_a_link_that_leads_nowhere(self, tmp_path: Path) -> None:
        (tmp_path / "link.ledger").symlink_to(tmp_path / "nowhere")
        with pytest.raises(LedgerError, match="cannot open"):
            Ledger.create(tmp_path / "link.ledger", dataset="homes", total=Total.pure(1.0))
        assert not (tmp_path / "nowhere").exists()

    @pytest.mark.parametrize("replaced", [False, True])
    def test_a_log_that_was_taken_away_lets_no_answer_out(self, on_disk: Ledger, file: Path, replaced: bool) -> None:
        """What is written to it would be gone after a crash, and whoever opens the ledger now would not see it."""
        log = file.with_name(file.name + "-wal")
        log.unlink()
        if replaced:
            log.write_bytes(b"")
            log.chmod(0o600)
        with pytest.raises(LedgerError, match="write-ahead log"):
            on_disk.ask({"question": 2}, cost=0.25, draw=never)

    def test_a_log_taken_away_while_the_answer_is_drawn_shows_nothing(self, on_disk: Ledger, file: Path) -> None:
        def draw() -> str:
            file.with_name(file.name + "-wal").unlink()
            return "never shown"

        with pytest.raises(LedgerError, match="write-ahead log"):
            on_disk.ask({"question": 2}, cost=0.25, draw=draw)

    def test_a_log_that_was_lost_shows_by_the_anchor(self, on_disk: Ledger, file: Path, tmp_path: Path) -> None:
        """The file alone, as a careless copy takes it: older than the ledger, or not even a ledger."""
        on_disk.close()
        on_disk.ask({"question": 2}, cost=0.25, draw=lambda: "y")
        anchor = on_disk.balance().anchor
        shutil.copy2(file, tmp_path / "copy.ledger")
        with pytest.raises(LedgerError, match="older copy"):
            Ledger.open(tmp_path / "copy.ledger", anchor=anchor)

    def test_a_damaged_file_is_one_clear_line(self, on_disk: Ledger, file: Path) -> None:
        on_disk.close()
        content = bytearray(file.read_bytes())
        content[4096:] = os.urandom(len(content) - 4096)
        file.write_bytes(content)
        with pytest.raises(LedgerError) as refused:
            Ledger.open(file, patience=1.0).ask({"question": 2}, cost=0.25, draw=never)
        assert "\n" not in str(refused.value)

    def test_a_link_in_place_of_the_log_is_not_followed(self, file: Path, tmp_path: Path) -> None:
        victim = tmp_path / "victim"
        file.with_name(file.name + "-wal").symlink_to(victim)
        with pytest.raises(LedgerError):
            Ledger.create(file, dataset="homes", total=Total.pure(1.0), patience=1.0)
        assert not victim.exists()

    @pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs the superuser")
    def test_a_folder_that_became_read_only_lets_nothing_out(self, on_disk: Ledger, file: Path, tmp_path: Path) -> None:
        on_disk.close()
        mounts = [["mount", "--bind", str(tmp_path), str(tmp_path)], ["mount", "-o", "remount,ro,bind", str(tmp_path)]]
        if subprocess.run(mounts[0], capture_output=True).returncode:
            pytest.skip("this machine does not let the tests mount a folder")
        try:
            subprocess.run(mounts[1], check=True, capture_output=True)
            with Ledger.open(file, patience=1.0) as opened:
                assert opened.balance().spent == 0.25, "it can be shown"
                assert opened.verify().holds
                with pytest.raises(LedgerError, match="readonly") as refused:
                    opened.ask({"question": 2}, cost=0.25, draw=never)
            assert "\n" not in str(refused.value)
        finally:
            subprocess.run(["umount", str(tmp_path)], check=True)
        with Ledger.open(file) as again:
            assert again.balance().spent == 0.25

    def test_a_stopped_process_that_goes_on_later_shows_what_stands(self, on_disk: Ledger, file: Path) -> None:
        """SIGSTOP between the charge and the answer; meanwhile somebody else asks the same."""
        code = """
            import os, signal, sys
            from dpselect.ledger import Ledger
            def draw():
                print("charged", flush=True)
                os.kill(os.getpid(), signal.SIGSTOP)
                return "drawn too late"
            with Ledger.open(sys.argv[1]) as ledger:
                print(ledger.ask({"question": 2}, cost=0.25, draw=draw).answer)
            """
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(file)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "charged\n"
        assert on_disk.ask({"question": 2}, cost=0.25, draw=lambda: "x").answer == "x"
        while child.poll() is None:
            child.send_signal(signal.SIGCONT)
            time.sleep(0.02)
        assert child.stdout.read() == "x\n"
        child.stdout.close()
        assert on_disk.balance().spent == 0.5

    def test_settings_changed_by_others_do_not_weaken_it(self, on_disk: Ledger, file: Path) -> None:
        """A log that is thrown away, no synchronising: neither outlives the one who chose it."""
        on_disk.close()
        other = sqlite3.connect(file)
        assert other.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
        other.execute("PRAGMA synchronous = OFF")
        other.close()
        on_disk.ask({"question": 2}, cost=0.25, draw=lambda: "y")

        def settings(connection: Any) -> list[Any]:
            return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]

        assert on_disk._database.read(settings) == ["wal", 2]
        assert on_disk.verify().holds


class TestNames:
    def test_another_ledger_of_the_same_name_does_not_pass_for_it(self, on_disk: Ledger, tmp_path: Path) -> None:
        anchor = on_disk.balance().anchor
        with Ledger.create(tmp_path / "b.ledger", dataset="homes", total=Total.pure(1.0)) as other:
            for question in range(3):
                other.ask({"question": question}, cost=0.1, draw=lambda: "x")
        with pytest.raises(LedgerError, match="rewritten"):
            Ledger.open(tmp_path / "b.ledger", anchor=anchor)

    def test_entries_of_one_ledger_do_not_fit_into_another(self, on_disk: Ledger, file: Path, tmp_path: Path) -> None:
        """The same question at the same second: still another chain, because the one before it is."""
        with Ledger.create(tmp_path / "b.ledger", dataset="homes", total=Total.pure(9.0)) as other:
            other.ask({"question": 1}, cost=0.25, draw=lambda: "x")
            other.close()
            connection = sqlite3.connect(tmp_path / "b.ledger", isolation_level=None)
            connection.execute("ATTACH ? AS mine", (str(file),))
            for deed in ("UPDATE", "DELETE"):
                connection.execute(f"DROP TRIGGER dpselect_ledger_no_{deed}")
            connection.execute("DELETE FROM dpselect_ledger_entries WHERE number = 3")
            connection.execute(
                "INSERT INTO dpselect_ledger_entries SELECT * FROM mine.dpselect_ledger_entries WHERE number = 3"
            )
            connection.close()
            assert not other.verify().holds

    def test_keys_of_different_questions_never_meet(self) -> None:
        asked = ['{"a":1}', '{"a":"1"}', '["{}",null]', "", '", "', "null"]
        keys = [None, "", "null", '"', '", "', "1", '{"a":1}', "stretch"]
        assert len({key_of(question, key) for question in asked for key in keys}) == len(asked) * len(keys)

    def test_a_stream_and_a_question_of_the_same_words_are_two(self, on_disk: Ledger) -> None:
        from dpselect.ledger.answer_log import AnswerLog
        from dpselect.ledger.filter import RealisedLedgerFilter

        on_disk.reserve({"verb": "watch"}, cost=0.25)
        stream = RealisedLedgerFilter(on_disk, question={"verb": "watch"}, limit=0.25, answers=AnswerLog())
        stream.charge(0.125)
        assert on_disk.balance().spent > 0.5
        stream.close()
        assert on_disk.balance().spent == 0.625


class TestTiming:
    def test_nothing_is_reserved_after_a_data_set_was_retired(self, ledger: Ledger, place: str) -> None:
        started, refused = threading.Barrier(5), []

        def ask(worker: int) -> None:
            with Ledger.open(place, patience=30.0) as mine:
                started.wait()
                try:
                    for question in range(100):
                        mine.ask({"worker": worker, "question": question}, cost=1e-6, draw=lambda: "x")
                except LedgerError as problem:
                    refused.append(str(problem))

        workers = [threading.Thread(target=ask, args=(worker,)) for worker in range(4)]
        for worker in workers:
            worker.start()
        started.wait()
        ledger.retire("now")
        for worker in workers:
            worker.join()
        assert len(refused) == 4
        assert all("retired" in line for line in refused)
        kinds = [entry.kind for entry in ledger.entries()]
        assert "reserve" not in kinds[kinds.index("retire") :]
        assert ledger.verify().holds

    def test_streams_and_questions_at_once_stay_within_the_total(self, ledger: Ledger, place: str) -> None:
        out: list[float] = []

        def questions() -> None:
            with Ledger.open(place) as mine:
                name = threading.get_ident()
                for question in range(200):
                    mine.ask({"thread": name, "question": question}, cost=0.0078125, draw=lambda: "x")
                    out.append(0.0078125)

        def stream() -> None:
            with Ledger.open(place) as mine, filter_on(mine, question={"verb": "watch"}, stretch=0.0625) as budget:
                for _ in range(200):
                    budget.charge(0.0078125)
                    out.append(0.0078125)

        def until_the_end(work: object) -> None:
            with pytest.raises(DPSelectError):
                work()  # type: ignore[operator]

        workers = [threading.Thread(target=until_the_end, args=(work,)) for work in (questions, questions, stream)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        with pytest.raises(BudgetExhausted):
            ledger.reserve({"question": "one more"}, cost=0.0078125)
        assert sum(out) == ledger.balance().spent == 1.0
        assert ledger.verify().holds
