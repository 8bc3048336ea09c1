"""TOML and JSON documents of plain values, read strictly and written so that every number comes back the same."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpselect.errors import SourceError
from dpselect.files import fresh_file


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
    place = Path(path)
    try:
        text = place.read_text(encoding="utf-8")
        found = json.loads(text) if place.suffix == ".json" else tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as failure:
        raise SourceError(f"cannot read {str(path)!r} ({failure})") from None
    except (tomllib.TOMLDecodeError, json.JSONDecodeError) as failure:
        raise SourceError(f"{str(path)!r} is not a TOML or JSON document: {failure}") from None
    if not isinstance(found, dict):
        raise SourceError(f"{str(path)!r} must hold a table of names and values")
    return found


def write_document(document: Mapping[str, Any], path: Path | str) -> Path:
    """Writes TOML, or JSON where the name ends so; a file that was there is replaced at once or not at all."""
    target = Path(path)
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n" if target.suffix == ".json" else as_toml(document)
    with fresh_file(target, what="document") as fresh:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(target)
    return target.resolve()
