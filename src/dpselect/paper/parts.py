"""A figure's work in parts: plain parameters, each with its own random numbers, that any process can compute.

Random numbers here are NumPy's, seeded by the parameters: the figures are simulations on public data, not private
releases, and the same parameters must give the same figure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

#: The parameters of one piece of work; JSON can write them.
Part: TypeAlias = dict[str, Any]

#: A tidy pandas table, one observation per row. What a cell holds is not in its type, so neither is it in this one.
Table: TypeAlias = Any


def digest_of(part: Part) -> str:
    """A name for the parameters that changes with any of them.

    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(part, sort_keys=True, allow_nan=False).encode()).hexdigest()


def generator_of(part: Part) -> np.random.Generator:
    """Random numbers that belong to these parameters.

    >>> generator_of({"a": 1}).random() == generator_of({"a": 1}).random()
    True
    """
    return np.random.default_rng(int(digest_of(part), 16))


def gather(parts: Iterable[Part], *, measure: Callable[..., Table], data: Path | None) -> Table:
    """All parts, one after the other, in one table."""
    return pd.concat([measure(part, data=data) for part in parts], ignore_index=True)
