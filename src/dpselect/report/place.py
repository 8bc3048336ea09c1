"""Where output may be put: never over something that this package did not write."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from dpselect.errors import SourceError

#: How every page of this package begins; a file that begins otherwise is somebody else's.
PAGE_MARK = "<!DOCTYPE html>\n<!-- Made with dpselect -->\n"
PAGE_ENDINGS = (".html", ".htm")


def refused_place(what: str, path: Path, why: str) -> SourceError:
    """The one line for a place that cannot be used.

    >>> str(refused_place("report", Path("readings.csv"), "it is one of the inputs"))
    "cannot write the report to 'readings.csv' (it is one of the inputs); choose another place"
    """
    return SourceError(f"cannot write the {what} to {str(path)!r} ({why}); choose another place")


def check_place(
    path: Path,
    *,
    what: str = "report",
    endings: Sequence[str] = PAGE_ENDINGS,
    begins: Sequence[bytes] = (PAGE_MARK.encode(),),
    inputs: Iterable[str | Path] = (),
) -> None:
    """Refuses a place where a file must not be written.

    Parameters
    ----------
    path : Path
        The place. Its folder must be there; the name must have one of the ``endings``. A link, a device or a folder is
        refused, and so is a file that holds something else than an earlier output of the same kind.
    what : str
        What is to be written, for the message.
    begins : sequence of bytes
        How a file that may be replaced begins.
    inputs : iterable of paths
        Files that are read, under whatever name: never replaced.
    """
    if not path.name.lower().endswith(tuple(endings)):
        raise refused_place(what, path, f"the name must end in {' or '.join(endings)}")
    try:
        if not path.parent.is_dir():
            raise refused_place(what, path, "there is no such folder; make it first")
        # lstat, not stat: a link could lead to the data, now or by the time the file is written.
        found = path.lstat() if path.is_symlink() or path.exists() else None
        if found is None:
            return
        if not stat.S_ISREG(found.st_mode):
            raise refused_place(what, path, "there is something else than an ordinary file")
        if any(Path(one).exists() and path.samefile(one) for one in inputs):
            raise refused_place(what, path, "it is one of the inputs")
        with path.open("rb") as file:
            start = file.read(max(map(len, begins)))
    except (OSError, ValueError) as failure:
        raise refused_place(what, path, getattr(failure, "strerror", None) or "it cannot be looked at") from None
    if start and not start.startswith(tuple(begins)):
        raise refused_place(what, path, f"a file is there that is no {what} of dpselect")


def check_folder(path: Path, *, what: str) -> None:
    """Refuses a place that cannot become a folder: asked before the work, not after."""
    try:
        nearest = next(place for place in (path, *path.parents) if place.exists())
    except (OSError, StopIteration):
        raise refused_place(what, path, "it cannot be looked at") from None
    if not nearest.is_dir():
        raise refused_place(what, path, f"{nearest.name!r} is a file, not a folder")
