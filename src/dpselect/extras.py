"""Which extra of the package brings a library that is not installed."""

from __future__ import annotations

_EXTRAS = {
    "matplotlib": "plots",
    "ibis": "tables",
    "duckdb": "tables",
    "pyarrow": "tables",
    "polars": "polars",
    "pyspark": "spark",
    "pandas": "paper",
    "mpmath": "paper",
    "pooch": "paper",
    "rich": "cli",
    "cupy": "gpu",
}


def missing_extra(failure: BaseException) -> str | None:
    """One line on what to install for a library that was not found, or ``None`` where it is not one of ours.

    >>> missing_extra(ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib.pyplot"))
    'this needs matplotlib, which is not installed; install dpselect[plots]'
    """
    if not isinstance(failure, ModuleNotFoundError) or not failure.name:
        return None
    library = failure.name.partition(".")[0]
    extra = _EXTRAS.get(library)
    return extra and f"this needs {library}, which is not installed; install dpselect[{extra}]"
