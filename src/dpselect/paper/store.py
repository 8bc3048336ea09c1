"""Finished parts on disk, found again by their parameters and by the code that computed them."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import pandas as pd
import pyarrow

import dpselect
from dpselect.files import fresh_file
from dpselect.paper.figure import Part, Table, digest_of


@cache
def code_digest() -> str:
    """Changes with any file the numbers depend on, so that none computed by other code is ever shown."""
    home = Path(dpselect.__file__).parent
    digest = hashlib.sha256()
    rooms = ("checks.py", "numerics/*.py", "privacy/*.py", "mechanisms/*.py", "paper/*.py")
    for path in sorted(path for room in rooms for path in home.glob(room)):
        digest.update(path.relative_to(home).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Store:
    """One Parquet file per finished part, written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, figure: str, *, part: Part) -> Path:
        """Where a part's table lies."""
        name = digest_of({"figure": figure, "part": part, "code": code_digest()})[:24]
        return self.folder / f"{figure}-{name}.parquet"

    def get(self, figure: str, *, part: Part) -> Table | None:
        """The finished table; None where there is none, or where it was damaged and is to be computed again."""
        path = self.path(figure, part=part)
        if not path.is_file():
            return None
        try:
            found: Table = pd.read_parquet(path)
        except (pyarrow.ArrowException, OSError):
            return None
        return found

    def put(self, figure: str, *, part: Part, table: Table) -> None:
        """Keeps a finished table; a crash leaves the old state or the new one."""
        path = self.path(figure, part=part)
        path.parent.mkdir(parents=True, exist_ok=True)
        with fresh_file(path, what="finished part") as fresh:
            table.to_parquet(fresh, index=False)
            fresh.replace(path)
