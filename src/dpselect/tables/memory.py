"""How much memory there is to use, so that an engine spills to disk instead of being killed."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path

#: The share of what is there that DuckDB may take; the rest is for Python, Arrow and what else runs.
_SHARE = 0.6
_LEAST = 128 * 2**20
_LIMITS_OF_THE_GROUP = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def memory_there() -> int | None:
    """Bytes this process may still take, by the machine, its control group and ``ulimit -v``; ``None`` if unknown."""
    found = []
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found.append(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")))
    for place in _LIMITS_OF_THE_GROUP:
        with suppress(OSError, ValueError):  # "max" is no number
            found.append(int(place.read_text()))
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        with suppress(OSError, ValueError):
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            found.append(max(0, limit - used))
    return min(found, default=None)


def duckdb_settings() -> dict[str, str | int]:
    """A memory limit for DuckDB, and one thread where there is little; it spills to disk beyond that.

    >>> sorted(duckdb_settings())[:1]
    ['memory_limit']
    """
    there = memory_there()
    if there is None:
        return {}
    limit = max(_LEAST, int(there * _SHARE))
    settings: dict[str, str | int] = {"memory_limit": f"{limit // 2**20}MiB"}
    if limit < 2**30:
        settings["threads"] = 1
    return settings
