"""Where output may be put and how it is written: never over somebody else's file, and whole or not at all.

Every file this package writes goes through here: :func:`check` before the work, :func:`write` after it. Jobs and plans
are documents of plain values, TOML or JSON, read strictly and written so that every number comes back the same.
"""

from __future__ import annotations

import json
import math
import os
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpselect.errors import SourceError, refuse
from dpselect.secrets import shown

#: How every page of this package begins; a page that begins otherwise is somebody else's.
PAGE_MARK = "<!DOCTYPE html>\n<!-- Made with dpselect -->\n"


@dataclass(frozen=True)
class Kind:
    """A kind of file: what it is called, how its name ends, and how one begins that may be replaced."""

    what: str
    endings: tuple[str, ...]
    begins: tuple[bytes, ...]


PAGE = Kind("report", (".html", ".htm"), (PAGE_MARK.encode(),))
DRAWING = Kind("drawing", (".svg", ".png", ".pdf"), (b"<?xml", b"<svg", b"\x89PNG", b"%PDF"))


def is_there(place: Path | str, kind: Callable[[Path], bool] = Path.exists) -> bool:
    """Whether there is such a file, or folder; a name that is too long, or has a null in it, is none.

    >>> is_there("x" * 5_000), is_there(".", Path.is_file), is_there(".", Path.is_dir)
    (False, False, True)
    """
    try:
        return kind(Path(place))
    except (OSError, ValueError):
        return False


def plain_file(place: Path | str) -> Path:
    """The path of a file that is about to be read; a pipe or a device is refused, since reading it may never end.

    What is not there passes: opening it says so.

    >>> plain_file("/dev/null")
    Traceback (most recent call last):
        ...
    dpselect.errors.SourceError: '/dev/null' is not a plain file; write what comes through it to a file first
    """
    path = Path(place)
    if is_there(path) and not (is_there(path, Path.is_file) or is_there(path, Path.is_dir)):
        raise SourceError(f"{shown(place)} is not a plain file; write what comes through it to a file first")
    return path


def refused_place(what: str, path: Path, why: str) -> SourceError:
    """The one line for a place that cannot be used.

    >>> str(refused_place("report", Path("readings.csv"), "it is one of the inputs"))
    "cannot write the report to 'readings.csv' (it is one of the inputs); choose another place"
    """
    return SourceError(f"cannot write the {what} to {str(path)!r} ({why}); choose another place")


def check(path: Path | str, kind: Kind, *, inputs: Iterable[str | Path] = ()) -> None:
    """Refuses a place where a file of this kind must not or cannot be written; nothing is left there.

    Call it before the work: an answer that was paid for must not be lost because it cannot be saved.

    Parameters
    ----------
    path : path
        Its folder must exist and its name must end as the kind's do. A link, a device or a folder is refused, and so
        is a file that is not an earlier one of the same kind.
    kind : Kind
        What is to be written.
    inputs : iterable of paths
        Files that are read, under whatever name: never replaced.
    """
    place = Path(path)
    _check_place(place, kind, inputs=inputs)
    with fresh_file(place, what=kind.what):
        pass


def write(path: Path | str, content: str | bytes, kind: Kind) -> Path:
    """Writes a file; an earlier one of the same kind is replaced at once or not at all, anything else is refused.

    Returns
    -------
    Path
        Where the file is, in full.
    """
    place = Path(path)
    _check_place(place, kind)
    with fresh_file(place, what=kind.what) as fresh:
        fresh.write_bytes(content.encode("utf-8", errors="replace") if isinstance(content, str) else content)
        fresh.replace(place)
    return place.resolve()


def from_url(place: Any) -> Any:
    """A place given as a ``file://`` address, as a path; any other place as it is.

    >>> from_url("file:///data/my%20rows.csv"), from_url("rows.csv")
    ('/data/my rows.csv', 'rows.csv')
    """
    if isinstance(place, list | tuple):
        return tuple(from_url(one) for one in place)
    if not isinstance(place, str) or not place.lower().startswith("file://"):
        return place
    from urllib.parse import unquote, urlsplit

    found = urlsplit(place)
    if found.netloc not in ("", "localhost"):
        raise SourceError("a file:// address must name a file on this machine, as in file:///data/readings.csv")
    return unquote(found.path)


@contextmanager
def fresh_file(target: Path, *, what: str = "file") -> Iterator[Path]:
    """An empty file beside the target: fill it, then ``replace(target)``. Gone afterwards if it was not used.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "table.csv"
    ...     with fresh_file(target) as fresh:
    ...         _ = fresh.write_text("a,b")
    ...         _ = fresh.replace(target)
    ...     [path.name for path in Path(folder).iterdir()]
    ['table.csv']
    """
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".dpselect-", suffix=target.suffix)
        os.close(handle)
        fresh = Path(name)
        try:
            fresh.chmod(0o644)
            yield fresh
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as failure:
        raise refused_place(what, target, failure.strerror or "it cannot be written") from None


def check_folder(path: Path | str, *, what: str) -> None:
    """Refuses a place that cannot become a folder: asked before the work, not after."""
    place = Path(path)
    try:
        nearest = next(one for one in (place, *place.parents) if one.exists())
    except (OSError, StopIteration):
        raise refused_place(what, place, "it cannot be looked at") from None
    if not nearest.is_dir():
        raise refused_place(what, place, f"{nearest.name!r} is a file, not a folder")


def _check_place(place: Path, kind: Kind, *, inputs: Iterable[str | Path] = ()) -> None:
    what = kind.what
    if not place.name.lower().endswith(kind.endings):
        raise refused_place(what, place, f"the name must end in {' or '.join(kind.endings)}")
    try:
        if not place.parent.is_dir():
            raise refused_place(what, place, "there is no such folder; make it first")
        # lstat, not stat: a link could lead to the data, now or by the time the file is written.
        found = place.lstat() if place.is_symlink() or place.exists() else None
        if found is None:
            return
        if not stat.S_ISREG(found.st_mode):
            raise refused_place(what, place, "there is something else than an ordinary file")
        if any(Path(one).exists() and place.samefile(one) for one in inputs):
            raise refused_place(what, place, "it is one of the inputs")
        with place.open("rb") as file:
            start = file.read(max(map(len, kind.begins)))
    except (OSError, ValueError) as failure:
        raise refused_place(what, place, getattr(failure, "strerror", None) or "it cannot be looked at") from None
    if start and not start.startswith(kind.begins):
        raise refused_place(what, place, f"a file is there that is no {what} of dpselect")


def as_toml(document: Mapping[str, Any]) -> str:
    """A document of plain values and one level of tables.

    >>> print(as_toml({"contender": "exponential", "family": {"lower": 0.0, "monotone": True}}), end="")
    contender = "exponential"
    <BLANKLINE>
    [family]
    lower = 0.0
    monotone = true
    """
    plain = {key: value for key, value in document.items() if not isinstance(value, Mapping)}
    lines = [f"{key} = {_written(value)}" for key, value in plain.items() if value is not None]
    for key, table in document.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{key}]"]
            lines += [f"{name} = {_written(value)}" for name, value in table.items() if value is not None]
    return "\n".join(lines) + "\n"


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # TOML's basic strings take JSON's escapes, once no character is left that only one of them allows.
        return json.dumps(value).replace("\x7f", "\\u007f")
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ("nan" if math.isnan(value) else "inf" if value > 0 else "-inf")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_written(item) for item in value) + "]"
    raise TypeError(f"cannot write {type(value).__name__} as TOML")


def read_document(path: Path | str) -> dict[str, Any]:
    """A TOML document, or a JSON one where the name ends so."""
    if not isinstance(path, str | os.PathLike):
        raise refuse("path", path, "the name of a file")
    place = plain_file(path)
    try:
        text = place.read_text(encoding="utf-8")
        found = json.loads(text) if place.suffix == ".json" else tomllib.loads(text)
    except (tomllib.TOMLDecodeError, json.JSONDecodeError) as failure:
        raise SourceError(f"{shown(path)} is not a TOML or JSON document: {failure}") from None
    except (OSError, ValueError) as failure:  # no UTF-8 text, or a name that no file can have
        raise SourceError(f"cannot read {shown(path)} ({getattr(failure, 'strerror', None) or 'no text'})") from None
    if not isinstance(found, dict):
        raise SourceError(f"{shown(path)} must hold a table of names and values")
    return found


def write_document(document: Mapping[str, Any], path: Path | str) -> Path:
    """Writes TOML, or JSON where the name ends so; a file that was there is replaced at once or not at all."""
    target = Path(path)
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n" if target.suffix == ".json" else as_toml(document)
    with fresh_file(target, what="document") as fresh:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(target)
    return target.resolve()
