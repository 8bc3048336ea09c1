"""Whatever a public callable is given, it answers or raises one of the package's own errors.

Calls fit the callable's signature; what is odd is the values. A call that does not fit is Python's to refuse.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import math
import pkgutil
import random
import signal
import tempfile
import warnings
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from tests.composition.members import in_memory

import dpselect as dp
from dpselect import ledger, tables
from dpselect.composition.ration import Ration
from dpselect.errors import DPSelectError, DPSelectWarning

FAMILY = dp.QueryFamily(lower=0.0, upper=1.0, sensitivity=0.1, monotone=True)
WATCHER = dp.GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=1.0, sigma_query=1.0)
FILTERS = [make(1.0) for make in in_memory().values()]
EXPONENTIAL = dp.ExponentialAboveThreshold(FAMILY, threshold=0.5, scale_threshold=1.0, scale_query=1.0)
RATIONED = dp.SparseVector(EXPONENTIAL, budget=1.0, resample=False, ration=Ration(questions=9, expected=(2.0,)))
ODD = [None, True, 0, 1, -1, 3, 2.5, -0.0, math.nan, math.inf, -math.inf, 10**400, 5e-324, 1e308, "", "x", "nan", "\0"]
ODD += ["x" * 10_000, b"x", [], [1], [[1, 2], [3]], (), {}, {"a": 1}, set(), object(), len, int, Exception("x"), 1j]
ODD += [
    np.array(1.0),
    np.array([]),
    np.array([1.0, 2.0]),
    np.array(["a"]),
    np.array([[1.0]]),
    np.float32(1),
    np.int8(1),
]
ODD += [np.datetime64("2013-01-01"), Fraction(1, 3), Decimal("0.1"), Decimal("nan"), date(2013, 1, 1), FAMILY, range(3)]
RIGHT = [FAMILY, 0.5, 1.0, 3, 9, 0.1, "largest", [0.1, 0.2, 0.3], "2013-01-01", "2013-01-31", ["a", "b"], "day"]
SECONDS = 30
#: Called with numbers that were checked: a formula that is kept with a class as data, the two ways into a run, and
#: what a ledger and its streams say to each other in whole units, and a column of a table.
CHECKED = {"bound", "put", "put_many", "asked", "exchange", "end_stretch", "of_period"}
LEDGERS = tempfile.TemporaryDirectory()
BOOKS = [
    ledger.Ledger.create(f"{LEDGERS.name}/{total.kind}", dataset="homes", total=total)
    for total in (ledger.Total.pure(5.0), ledger.Total.zcdp(5.0, delta=1e-6))
]


def rooms():
    """The package and every room of it that says what is public."""
    for name in ["dpselect", *(f"dpselect.{room.name}" for room in pkgutil.iter_modules(dp.__path__) if room.ispkg)]:
        if name not in ("dpselect.cli", "dpselect.demo"):
            module = importlib.import_module(name)
            if hasattr(module, "__all__"):
                yield module


def callables():
    """Every public function and class, and the public methods of objects made rightly."""
    found = {"Ration": Ration}
    for module in rooms():
        for name in module.__all__:
            thing = getattr(module, name)
            made_to_be_raised = inspect.isclass(thing) and issubclass(thing, BaseException)
            if (
                callable(thing)
                and thing not in found.values()
                and not made_to_be_raised
                and not inspect.isabstract(thing)
                and thing not in (dp.Verdict, ledger.Ledger, ledger.LedgerFilter)  # made by their own methods
                and not getattr(thing, "_is_protocol", False)
            ):
                found[f"{module.__name__}.{name}"] = thing
    made = [
        FAMILY,
        dp.GaussianNoisyMax(FAMILY, sigma=1.0),
        WATCHER,
        dp.LaplaceAboveThreshold(FAMILY, threshold=0.5, scale_threshold=1.0, scale_query=1.0),
        EXPONENTIAL,
        dp.ExponentialMechanism(FAMILY, scale=1.0),
        dp.PermuteAndFlip(FAMILY, scale=1.0),
        dp.LaplaceNoisyMax(FAMILY, scale=1.0),
        *FILTERS,
        dp.Odometer(),
        dp.SetAboveThreshold(FAMILY, threshold=0.5, scale=1.0, scale_threshold=1.0),
        dp.SparseVector(WATCHER, budget=1.0),
        RATIONED,
        WATCHER.start(),
        tables.Calendar("2013-01-01", "2013-01-31"),
        tables.Cycle("2013-01-01", "2013-01-31", every="weekday"),
        tables.Categories(["a", "b"]),
        tables.Question(user="a", time="b", value="c", cap=1, population=3),
        *BOOKS,
        *(ledger.filter_on(book, question={"verb": "watch"}) for book in BOOKS),
    ]
    for thing in made:
        for name in dir(thing):
            static = isinstance(inspect.getattr_static(thing, name), staticmethod)
            if not name.startswith("_") and name not in CHECKED and (static or inspect.ismethod(getattr(thing, name))):
                rationed = "rationed " if thing is RATIONED else ""
                found[f"{rationed}{type(thing).__name__}.{name}"] = getattr(thing, name)
    return found


CALLABLES = callables()


def arguments(thing, chance):
    """Values for the callable's parameters, mostly odd; parameters with a default are often left out."""
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return None
    given, named = [], {}
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        optional = parameter.default is not parameter.empty
        if optional and chance.random() < 0.6:
            if parameter.kind is not parameter.KEYWORD_ONLY:
                break
            continue
        value = chance.choice(ODD if chance.random() < 0.5 else RIGHT)
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = value
        else:
            given.append(value)
    return given, named


class TooSlow(BaseException):
    """Not an Exception, so that nothing on the way takes it for one of its own."""


def attempt(name, thing, seed):
    made = arguments(thing, random.Random(f"{name} {seed}"))
    if made is None:
        return None
    given, named = made

    def ring(*_):
        raise TooSlow

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", DPSelectWarning)
            thing(*given, **named)
    except DPSelectError as failure:
        if "\n" in str(failure) or len(str(failure)) > 400:
            return f"{name}(*{given!r:.200}, **{named!r:.200}): a message too long: {failure!s:.200}"
    except TooSlow:
        return f"{name}(*{given!r:.300}, **{named!r:.300}): over {SECONDS} s"
    except BaseException as failure:
        return f"{name}(*{given!r:.300}, **{named!r:.300}): {type(failure).__name__}: {failure!s:.200}"
    finally:
        signal.alarm(0)
    return None


@pytest.mark.parametrize("name", CALLABLES)
def test_a_bad_argument_is_refused_in_the_package_s_own_words(name):
    wrong = [told for seed in range(20) if (told := attempt(name, CALLABLES[name], seed))]
    assert not wrong, "\n".join(wrong[:5])


@pytest.mark.parametrize("threshold", [1e7, -1e7, 1e12, 1e100, -1e300])
def test_a_threshold_that_nothing_reaches_is_refused_at_once(threshold):
    with pytest.raises(dp.InvalidParameter, match="within 1,000,000 times the range"):
        dp.GaussianAboveThreshold.calibrated(FAMILY, threshold=threshold, epsilon=1.0, horizon=50)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CALLABLES)
def test_ten_thousand_bad_arguments_are_refused_in_the_package_s_own_words(name):
    each = 10_000 // len(CALLABLES) + 1
    wrong = [told for seed in range(20, 20 + each) if (told := attempt(name, CALLABLES[name], seed))]
    assert not wrong, "\n".join(wrong[:5])
