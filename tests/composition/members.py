"""Members of the filters' contract suites: every concrete subclass of ``Filter`` that the package holds.

A new filter is tested because it exists. One that takes a parameter not named here cannot be made, and fails.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

import dpselect
from dpselect.composition.filter import Filter

#: What a filter's limit may be called.
LIMITS = ("epsilon", "tau", "rho", "mu")
#: Values of the parameters that have no default.
OTHERS = {"delta": 1e-5, "order": 8.0}


def subclasses(cls: type[Filter]) -> list[type[Filter]]:
    """Concrete subclasses within the package, from all of its modules."""
    for module in pkgutil.walk_packages(dpselect.__path__, "dpselect."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, left = [], [cls]
    while left:
        one = left.pop()
        left += one.__subclasses__()
        if not inspect.isabstract(one) and one.__module__.split(".")[0] == "dpselect":
            found.append(one)
    return sorted(found, key=lambda one: one.__name__)


def required(cls: type[Filter]) -> list[str]:
    """Names of the parameters that have no default."""
    given = inspect.signature(cls).parameters.values()
    return [parameter.name for parameter in given if parameter.default is parameter.empty]


def limit_name(cls: type[Filter]) -> str:
    """What the limit of this filter is called."""
    (name,) = set(LIMITS) & set(required(cls))
    return name


def make(cls: type[Filter], limit: Any, **others: Any) -> Filter:
    """A filter of this class with this limit; ``others`` in place of ``OTHERS``."""
    values = {**OTHERS, **others, limit_name(cls): limit}
    return cls(**{name: values[name] for name in required(cls)})


def in_memory() -> dict[str, Callable[..., Filter]]:
    """How each filter that needs no ledger is made from its limit, by the name under which it is saved."""
    classes = [cls for cls in subclasses(Filter) if "ledger" not in required(cls)]
    makers: dict[str, Callable[..., Filter]] = {
        cls.name: lambda limit, cls=cls, **others: make(cls, limit, **others) for cls in classes
    }
    assert len(makers) == len(classes), "two filters are saved under one name"
    return makers
