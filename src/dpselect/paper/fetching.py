"""UCI Bikes from its publisher, through pooch; the file inside the archive must be the one named by its SHA-256."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from dpselect.errors import SourceError
from dpselect.paper.datasets import BIKES_SHA256, GPU_RESULTS, SERIES

#: The publisher's archive. It may be repacked, so the member is pinned, not the archive.
BIKES_URL = "https://archive.ics.uci.edu/static/public/275/bike+sharing+dataset.zip"


def fetch_bikes(folder: Path, *, beside: Path | None = None, url: str = BIKES_URL) -> Path:
    """A data folder that has ``day.csv``: ``beside`` if it already does, else ``folder`` after a download.

    The other files of ``beside`` are copied along, so that one folder serves every figure.
    """
    wanted = SERIES["uci"].files
    if beside is not None and any((beside / name).is_file() for name in wanted):
        return beside
    target = folder / "day.csv"
    if not target.is_file():
        shutil.copyfile(_member(folder / "archive", url=url), target)
    if beside is not None:
        others = {name for source in SERIES.values() for name in source.files} | {GPU_RESULTS}
        for name in sorted(others):
            if (beside / name).is_file():
                shutil.copyfile(beside / name, folder / name)
    return folder.resolve()


def _member(folder: Path, *, url: str) -> Path:
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
    member = next((Path(path) for path in unpacked if Path(path).name == "day.csv"), None)
    if member is None or hashlib.sha256(member.read_bytes()).hexdigest() != BIKES_SHA256:
        shutil.rmtree(folder)
        raise SourceError(f"the archive at {url} does not hold the published day.csv (SHA-256 {BIKES_SHA256})")
    return member
