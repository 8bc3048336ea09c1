"""Where the data files come from: UCI Bikes from its publisher, Low Carbon London's totals from its files per home.

The totals are sums over everybody, made once from public data for the figures, and not a private release: a private
question to such rows goes through :class:`dpselect.tables.Question`, which bounds what each home can add.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from dpselect.errors import SourceError
from dpselect.tables import open_source
from dpselect.tables.failures import engine_failures
from lebensold2024.datasets import GPU_RESULTS, SERIES

#: The publisher's archive. It may be repacked, so the file inside it is pinned, not the archive.
BIKES_URL = "https://archive.ics.uci.edu/static/public/275/bike+sharing+dataset.zip"

#: Homes with this class are left out, which leaves the paper's N = 5,564. An inference: the paper does not say.
UNCLASSED = "ACORN-"


def fetch_bikes(folder: Path, *, beside: Path | None = None, url: str = BIKES_URL) -> Path:
    """A data folder that has ``day.csv``: ``beside`` if it already does, else ``folder`` after a download.

    The other files of ``beside`` are copied along, so that one folder serves every figure.
    """
    if beside is not None and any((beside / name).is_file() for name in SERIES["uci"].files):
        return beside
    target = folder / "day.csv"
    if not target.is_file():
        shutil.copyfile(_downloaded(folder / "archive", url=url), target)
    if beside is not None:
        for name in sorted({name for source in SERIES.values() for name in source.files} | {GPU_RESULTS}):
            if (beside / name).is_file():
                shutil.copyfile(beside / name, folder / name)
    return folder.resolve()


def _downloaded(folder: Path, *, url: str) -> Path:
    """``day.csv`` out of the archive, through pooch; nothing is left behind where it is not the published file."""
    try:
        import pooch
    except ImportError:
        raise SourceError("downloading needs pooch; install dpselect[paper]") from None
    folder.mkdir(parents=True, exist_ok=True)
    try:
        unpacked = pooch.retrieve(
            url=url,
            known_hash=None,
            fname="bike_sharing.zip",
            path=folder,
            processor=pooch.Unzip(members=["day.csv"]),
            progressbar=False,
        )
    except Exception as failure:  # the network can fail in many ways, each with its own class
        raise SourceError(f"UCI Bikes could not be downloaded from {url}: {failure}") from failure
    try:
        member = next(Path(path) for path in unpacked if Path(path).name == "day.csv")
        SERIES["uci"].read(member)
    except (StopIteration, SourceError):
        shutil.rmtree(folder)
        sha256 = SERIES["uci"].sha256
        raise SourceError(f"the archive at {url} does not hold the published day.csv (SHA-256 {sha256})") from None
    return member


def low_carbon_london(
    readings: object, *, households: object, out: str | os.PathLike[str], backend: str = "duckdb"
) -> Path:
    """Writes ``lcl_daily_totals.csv``: the kWh of every day over the homes that have an ACORN class.

    Parameters
    ----------
    readings : source
        What :func:`~dpselect.tables.open_source` opens, with columns ``LCLid``, ``day`` (``2012-10-12``) and
        ``energy_sum`` (kWh; empty where nothing was read): the daily files, such as ``daily_dataset/*.csv``.
    households : source
        With columns ``LCLid`` and ``Acorn``: ``informations_households.csv``.
    out : path
        The data folder that receives the file.
    backend : str
        The engine.

    Returns
    -------
    Path
        The file, with columns ``day``, ``energy_sum_5564`` and ``households_5564``.

    Examples
    --------
    >>> import pyarrow, tempfile
    >>> days = pyarrow.table({"LCLid": ["a", "b", "c"], "day": ["2012-01-01"] * 3, "energy_sum": ["1.5", "2", "9"]})
    >>> homes = pyarrow.table({"LCLid": ["a", "b", "c"], "Acorn": ["ACORN-A", "ACORN-Q", "ACORN-"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(low_carbon_london(days, households=homes, out=folder).read_text())
    day,energy_sum_5564,households_5564
    2012-01-01,3.5,2
    <BLANKLINE>
    """
    rows = _columns(readings, names=("LCLid", "day", "energy_sum"), backend=backend)
    homes = _columns(households, names=("LCLid", "Acorn"), backend=backend)
    with engine_failures("adding up the daily readings"):
        classed = homes.filter(homes["Acorn"] != UNCLASSED).select("LCLid").distinct().to_pyarrow()
        kept = rows.filter(rows["LCLid"].isin(classed["LCLid"].to_pylist()))
        totals = (
            kept.mutate(kwh=kept["energy_sum"].cast("string").try_cast("float64"))
            .group_by("day")
            .agg(energy_sum_5564=lambda table: table["kwh"].sum(), households_5564=lambda table: table.count())
            .order_by("day")
            .to_pandas()
        )
    path = Path(out) / SERIES["lcl"].files[0]
    totals["energy_sum_5564"] = totals["energy_sum_5564"].fillna(0.0).round(3)
    totals.to_csv(path, index=False)
    return path


def _columns(source: object, *, names: tuple[str, ...], backend: str) -> Any:
    table = open_source(source, backend=backend)
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise SourceError(f"the source has no column {missing[0]!r}; it has {', '.join(table.columns)[:200]}")
    return table.select(*names)
