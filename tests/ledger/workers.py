"""Processes that use a ledger and may be killed; run as a script by the kill and race tests.

Everything is imported once, then children are forked: a child opens the ledger by itself, so it shares nothing with the
others but the database. What a child shows goes to a log with one ``write`` per line, which a SIGKILL cannot tear.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.pool import Pool

from dpselect.errors import BudgetExhausted, InvalidParameter
from dpselect.ledger import Ledger, book, filter_on

COST = 0.01


class Log:
    """Where answers get out."""

    def __init__(self, path: str) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, **line: Any) -> None:
        os.write(self._handle, json.dumps(line).encode() + b"\n")


def die_at(step: int) -> None:
    """SIGKILL this process just before or after its ``step``-th statement or commit."""
    left = [step]

    def count(*_: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    for name in ("before_cursor_execute", "after_cursor_execute", "commit"):
        event.listen(Engine, name, count)
    event.listen(Pool, "checkin", count)  # after a commit
    run = book.run

    def counted(*arguments: Any) -> Any:
        count()
        found = run(*arguments)
        count()
        return found

    book.run = counted


def ask_questions(place: str, log: Log, seed: int, show_first: bool) -> None:
    """Questions of which many are asked by others too, some settled below their reservation."""
    chance = random.Random(seed)
    with Ledger.open(place, who=f"worker {seed}") as ledger:
        while True:
            question = {"question": chance.randrange(3000)}
            answer = f"drawn by {seed}"
            if show_first:
                log.write(question=question["question"], answer=answer, cost=COST)
            try:
                held = ledger.reserve(question, cost=COST)
            except BudgetExhausted:
                return
            if held.settled is None:
                cost = COST * chance.choice([1.0, 0.5])
                answered = ledger.settle(held, {"text": answer, "cost": cost}, cost=cost)
                found, number, digest = answered.answer, answered.entry.number, answered.entry.digest
            else:
                found, number, digest = held.settled.content["answer"], held.settled.number, held.settled.digest
            if not show_first:
                log.write(question=question["question"], answer=found["text"], cost=found["cost"])
            log.write(settled=number, digest=digest)


def stream(place: str, log: Log, seed: int) -> None:
    """Charges of a stream, a stretch at a time."""
    with Ledger.open(place, who=f"stream {seed}") as ledger:
        try:
            with filter_on(ledger, question={"verb": "watch"}, stretch=5 * COST) as budget:
                for number in range(10_000):
                    budget.charge(COST / 4)
                    log.write(question=f"{seed} {number}", answer="⊥", cost=COST / 4)
        except BudgetExhausted:
            return


def kill(place: str, log_path: str, processes: int, *, show_first: bool) -> None:
    """So many children, each killed: half of them at a statement of their own, half by the clock."""
    chance = random.Random(processes)
    for seed in range(processes):
        child = os.fork()
        if child == 0:
            log = Log(log_path)
            if seed % 2:
                # Opening the ledger takes about 20 of these; a question 20.
                die_at(chance.randrange(20, 120))
            if seed % 5 == 4:
                stream(place, log, seed)
            else:
                ask_questions(place, log, seed, show_first)
            os._exit(0)
        chance.random()
        if seed % 2 == 0:
            time.sleep(chance.uniform(0.0, 0.12))
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def at_every_step(place: str, log_path: str, deed: str) -> None:
    """The same deed in child after child, each killed one statement later than the one before, until one comes through.

    The child's own number makes its questions its own.
    """
    for step in range(400):
        child = os.fork()
        if child == 0:
            log = Log(log_path)
            with Ledger.open(place, who=f"step {step}") as ledger:
                die_at(step)
                DEEDS[deed](ledger, log, step)
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
            log = Log(log_path)
            log.write(steps=step)
            return
    sys.exit("it never came through")


def ask_one(ledger: Ledger, log: Log, step: int) -> None:
    """One question."""
    answered = ledger.ask({"step": step, "question": 0}, cost=COST, draw=lambda: "x")
    log.write(question=f"{step} 0", answer=answered.answer, cost=COST)


def watch_three(ledger: Ledger, log: Log, step: int) -> None:
    """A watch that shows each answer as soon as it is in the ledger."""
    from dpselect import QueryFamily
    from dpselect.dataset import WatchRequest
    from dpselect.dataset.watch import plan_watch

    family = QueryFamily(lower=0, upper=1, sensitivity=1e-4)
    line = WatchRequest(threshold=0.5, budget=COST * 10, noise=(0.05, 0.08))
    watch = plan_watch(family, line, questions=40).start(book=ledger, key=str(step))
    before = 0.0
    for number, value in enumerate((0.0, 1.0, 0.0)):
        above = watch.ask(value)
        # What the answers so far cost together, each line with its share of it.
        log.write(question=f"{step} {number}", answer=above, cost=watch.vector.spent - before)
        before = watch.vector.spent
    watch.settle(ended=False)


DEEDS = {"ask": ask_one, "watch": watch_three}


def ask_until_the_end(ledger: Ledger, log: Log, seed: int) -> None:
    """Questions of one's own, until nothing more fits."""
    try:
        for count in itertools.count():
            ledger.ask({"racer": seed, "question": count}, cost=COST, draw=lambda: "x")
            log.write(question=f"{seed} {count}", answer="x", cost=COST)
    except BudgetExhausted:
        return


def ask_the_same(ledger: Ledger, log: Log, seed: int) -> None:
    """The questions that all others ask at the same time; every third draw fails, and says so."""
    chance = random.Random(seed)

    def draw() -> str:
        time.sleep(chance.uniform(0.0, 0.004))
        if chance.random() < 1 / 3:
            raise RuntimeError
        return f"drawn by {seed}"

    for number in range(20):
        question = {"question": number}
        try:
            answered = ledger.ask(question, cost=COST, draw=draw)
            log.write(question=number, seen=answered.answer)
        except RuntimeError:
            log.write(question=number, seen=f"the failure of {seed}")
        except InvalidParameter as refused:
            log.write(question=number, refused=str(refused))


def race(place: str, log_path: str, processes: int, deed: Callable[[Ledger, Log, int], None]) -> None:
    """So many children at once."""
    children = []
    for seed in range(processes):
        child = os.fork()
        if child == 0:
            with Ledger.open(place, who=f"racer {seed}", patience=120.0) as ledger:
                deed(ledger, Log(log_path), seed)
            os._exit(0)
        children.append(child)
    for child in children:
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            sys.exit("a racer failed")


if __name__ == "__main__":
    deed, where, out, count = sys.argv[1:5]
    if deed == "race":
        race(where, out, int(count), ask_until_the_end)
    elif deed in ("same", "same-careless"):
        if deed == "same-careless":  # whoever fails shows it, whatever others have shown

            def show(_: Ledger, __: Any, problem: BaseException) -> Any:
                raise problem

            Ledger._stands = show  # type: ignore[method-assign]
        race(where, out, int(count), ask_the_same)
    elif deed == "ask":
        at_every_step(where, out, deed)
    elif deed in DEEDS:
        from dpselect.dataset import kept  # once, before the children are forked

        kept.SECONDS_BETWEEN_ENTRIES = -1.0
        at_every_step(where, out, deed)
    else:
        kill(where, out, int(count), show_first=deed == "show-first")
