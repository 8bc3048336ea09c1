"""About sixty command lines and the small made-up files they read. Each must print the same, byte for byte.

Noise is seeded, or so small beside ε that it cannot change the answer.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

DAYS = [f"2013-01-{day:02d}" for day in range(1, 32)]
_HOMES = 300
_ROWS = "--user meter --time at --value kwh --cap 20 --population 300"
_JANUARY = "--from 2013-01-01 --to 2013-01-31"
_SERIES = f"days.csv --time day --value trips --maximum 1000 --population 1000 {_JANUARY}"
_SALES = "sales.csv --user person --category product --value euro --cap 100 --population 60"
_FAMILY = "--sensitivity 1/1000 --monotone"

#: Name: the command line, or the command lines that follow one another in one folder.
COMMANDS: dict[str, str | list[str]] = {
    "help": "--help",
    "help-peak": "peak --help",
    "help-watch": "watch --help",
    "help-plan": "plan --help",
    "help-describe": "describe --help",
    "help-epsilon": "epsilon --help",
    "help-calibrate": "calibrate --help",
    "help-ledger": "ledger --help",
    "help-demo": "demo --help",
    "version": "--version",
    "no-command": "",
    "unknown-command": "peek readings.csv",
    "unknown-option": f"peak readings.csv {_ROWS} {_JANUARY} --epsilom 1",
    "peak": f"peak readings.csv {_ROWS} {_JANUARY} --epsilon 1 --seed 1",
    "peak-json": f"peak readings.csv {_ROWS} {_JANUARY} --epsilon 1 --seed 1 --json",
    "peak-top": f"peak readings.csv {_ROWS} {_JANUARY} --epsilon 5 --top 3 --seed 2",
    "peak-values": f"peak readings.csv {_ROWS} {_JANUARY} --epsilon 5 --top 2 --how-much --unit kWh --seed 3",
    "peak-smallest": f"peak readings.csv {_ROWS} {_JANUARY} --epsilon 5 --smallest --seed 4",
    "peak-weekday": f"peak readings.csv {_ROWS} {_JANUARY} --epsilon 5 --every weekday --seed 5",
    "peak-week": f"peak readings.csv {_ROWS} --from 2013-01-01 --to 2013-01-28 --epsilon 5 --every week --seed 6",
    "peak-gaussian": f"peak readings.csv {_ROWS} {_JANUARY} --epsilon 5 --mechanism gaussian --seed 7",
    "peak-range": f"peak readings.csv {_ROWS} {_JANUARY} --epsilon 1 --range 2 9 --seed 8",
    "peak-count": f"peak readings.csv --user meter --time at --population 300 --measure count {_JANUARY} "
    "--epsilon 5 --seed 9 --anyway",
    "peak-wide": f"peak wide.csv --user meter --wide --cap 20 --population 300 {_JANUARY} --epsilon 5 --seed 10",
    "peak-series": f"peak {_SERIES} --epsilon 1 --seed 11",
    "peak-category": f"peak {_SALES} --categories tea,coffee,milk --epsilon 20 --seed 12",
    "peak-dry-run": f"peak readings.csv {_ROWS} {_JANUARY} --epsilon 1 --dry-run",
    "peak-dry-run-json": f"peak readings.csv {_ROWS} {_JANUARY} --epsilon 1 --dry-run --json",
    "peak-refused": f"peak readings.csv {_ROWS} {_JANUARY} --epsilon 0.001",
    "peak-no-epsilon": f"peak readings.csv {_ROWS} {_JANUARY}",
    "peak-no-dates": f"peak readings.csv {_ROWS} --epsilon 1",
    "peak-no-user": f"peak readings.csv --time at --value kwh --cap 20 --population 300 {_JANUARY} --epsilon 1",
    "peak-no-file": f"peak nothing.csv {_ROWS} {_JANUARY} --epsilon 1",
    "peak-no-column": f"peak readings.csv --user metre --time at --value kwh --cap 20 --population 300 {_JANUARY} "
    "--epsilon 1",
    "peak-bad-epsilon": f"peak readings.csv {_ROWS} {_JANUARY} --epsilon -1",
    "watch": f"watch readings.csv {_ROWS} {_JANUARY} --threshold 8 --budget 5 --seed 1",
    "watch-json": f"watch readings.csv {_ROWS} {_JANUARY} --threshold 8 --budget 5 --seed 1 --json",
    "watch-values": f"watch readings.csv {_ROWS} {_JANUARY} --threshold 8 --budget 10 --how-much --seed 2",
    "watch-expect": f"watch readings.csv {_ROWS} {_JANUARY} --threshold 8 --budget 5 --expect 10% --seed 3",
    "watch-laplace": f"watch readings.csv {_ROWS} {_JANUARY} --threshold 8 --budget 10 --mechanism laplace --seed 4",
    "watch-series": f"watch {_SERIES} --threshold 700 --budget 2 --seed 5",
    "watch-dry-run": f"watch readings.csv {_ROWS} {_JANUARY} --threshold 8 --budget 5 --dry-run",
    "watch-dry-run-json": f"watch readings.csv {_ROWS} {_JANUARY} --threshold 8 --budget 5 --dry-run --json",
    "watch-refused": f"watch readings.csv {_ROWS} {_JANUARY} --threshold 8 --budget 0.01",
    "watch-outside": f"watch readings.csv {_ROWS} {_JANUARY} --threshold 30 --budget 1",
    "watch-stream": f"watch - --threshold 0.5 --budget 2 {_FAMILY} --questions 31 --seed 6",
    "plan-largest": f"plan --candidates 365 --epsilon 0.1 {_FAMILY}",
    "plan-crossings": f"plan --threshold 0.6 --questions 60 --epsilon 1 {_FAMILY} --only exponential-rationed",
    "epsilon": "epsilon --sigma 0.1 --candidates 365 --sensitivity 1e-3",
    "epsilon-certified": "epsilon --sigma 0.1 --candidates 365 --sensitivity 1e-3 --certify",
    "epsilon-json": "epsilon --sigma 0.1 --candidates 365 --sensitivity 1e-3 --json",
    "epsilon-above-threshold": "epsilon --horizon 10,50 --threshold 0.5 --sigma-threshold 0.2 --sensitivity 1/1000",
    "epsilon-transcript": "epsilon --below 49 --above 1 --threshold 0.5 --sigma-threshold 0.2 --sensitivity 1/1000",
    "calibrate": "calibrate --epsilon 0.1 --candidates 365 --sensitivity 1e-3",
    "calibrate-above-threshold": "calibrate --horizon 365 --threshold 0.575 --epsilon 0.5 --sensitivity 1/6946",
    "describe": f"describe readings.csv {_ROWS} {_JANUARY}",
    "describe-guess": "describe readings.csv",
    "ledger": [
        f"describe readings.csv {_ROWS} {_JANUARY} --ledger homes.ledger --total 1000 --write homes.toml",
        "peak homes.toml --epsilon 300",
        "peak homes.toml --epsilon 300",
        "watch homes.toml --threshold 8 --budget 300",
        "peak homes.toml --epsilon 300 --dry-run --every weekday",
        "peak homes.toml --epsilon 900 --every weekday",
        "ledger show homes.ledger",
        "ledger history homes.ledger",
        "ledger verify homes.ledger",
    ],
}

#: What comes on standard input.
STDIN = {"watch-stream": "".join(f"{0.1 if day % 10 else 0.9}\n" for day in range(1, 32))}


def write_inputs(folder: Path) -> None:
    """The files that the command lines name."""
    made = random.Random(7)
    levels = [4.0 + 2.0 * math.sin(day / 5.0) + (6.0 if day in (19, 20, 21) else 0.0) for day in range(31)]
    levels[20] += 2.0
    homes = [[round(max(0.0, made.gauss(level, 1.5)), 2) for level in levels] for _ in range(_HOMES)]
    rows = [f"home-{home},{day},{kwh}" for home, each in enumerate(homes) for day, kwh in zip(DAYS, each, strict=True)]
    (folder / "readings.csv").write_text("\n".join(["meter,at,kwh", *rows]) + "\n")
    wide = [f"home-{home},{','.join(map(str, each))}" for home, each in enumerate(homes)]
    (folder / "wide.csv").write_text("\n".join([f"meter,{','.join(DAYS)}", *wide]) + "\n")
    trips = [f"{day},{300 + 600 * (place in (19, 20, 21))}" for place, day in enumerate(DAYS)]
    (folder / "days.csv").write_text("\n".join(["day,trips", *trips]) + "\n")
    sales = [f"person-{one},{('tea', 'coffee', 'milk')[one % 4 % 3]},{10 + one % 7}" for one in range(60)]
    (folder / "sales.csv").write_text("\n".join(["person,product,euro", *sales]) + "\n")
    (folder / "rows.jsonl").write_text("\n".join(json.dumps({"meter": "a", "at": day, "kwh": 1}) for day in DAYS))
