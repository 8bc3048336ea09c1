"""What a sparse vector leaves behind when it is saved: parameters, counts and exact sums, all public.

The secret noise is not in it, so an open run cannot be continued; restoring charges it and ends it.

Saved as JSON with a digest: SHA-256 over everything else in the file, which catches damage and careless edits. With
``key`` it is HMAC-SHA256, which also catches deliberate edits by anyone without the key. Neither can tell an old file
from the newest one: restoring the same file twice spends the same budget twice. Where that matters, keep the newest
state in a place that only moves forward, such as a ledger.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any, NamedTuple

from dpselect.checks import counts, one, refuse
from dpselect.composition import declared, realised
from dpselect.composition.budgeted_run import RunRecord
from dpselect.composition.costs import plain_cost
from dpselect.composition.filter import Filter, State, check_watcher
from dpselect.composition.loss_table import loss_table
from dpselect.errors import DPSelectError, StateRefused
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.mechanism import Noise
from dpselect.mechanisms.values import Clipper
from dpselect.rounding import read_units

FORMAT, VERSION = "dpselect sparse vector", 1
#: The filters of this package that have a name to be saved under.
_FILTERS: dict[str, type[Filter]] = {
    kind.name: kind
    for module in (realised, declared)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Filter) and "name" in vars(kind)
}


class SavedVector(NamedTuple):
    """The parts of a sparse vector that outlive its process."""

    #: The mechanism before cutting, the cut, and what happens to values outside.
    door: Clipper
    resample: bool
    horizon: int | None
    filter: Filter
    #: What the runs that ended cost, in multiples of 2^-1074.
    ended: int
    questions: int
    open: bool
    #: The run that was open, and what its answers cost so far; not in the filter's sums.
    run: RunRecord | None
    noise: Noise

    def written(self, *, key: bytes | None) -> str:
        """As JSON, with its format and its digest; an open run with what it cost so far."""
        run, kind = self.run, self.filter.name
        if _FILTERS.get(kind) is not type(self.filter):
            raise StateRefused(f"a {type(self.filter).__name__} cannot be saved: only the filters of this package can")
        state = {
            "watcher": self.door.watcher.state(),
            "clip": self.door.clip,
            "outside": self.door.outside,
            "resample": self.resample,
            "horizon": self.horizon,
            # Without the open run, whose charge stands below.
            "filter": {"kind": kind, **self.filter._state()},
            "ended": hex(self.ended),
            "questions": self.questions,
            "open": self.open,
            "run": None if run is None else {"below": run.below, "above": run.above, "charge": run.epsilon},
            "noise": self.noise,
        }
        return signed(state, key=key)

    @classmethod
    def read(cls, text: str, *, key: bytes | None) -> SavedVector:
        """What :meth:`written` wrote; anything else is refused."""
        state = verified(text, key=key)
        try:
            return cls._from_state(state)
        except StateRefused:
            raise
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, DPSelectError) as problem:
            raise StateRefused(f"the saved state is not usable: {problem}") from None

    @classmethod
    def _from_state(cls, state: State) -> SavedVector:
        _check_fields("the state", state, {*cls._fields, "watcher", "clip", "outside"} - {"door"})
        watcher = AboveThreshold.from_state(state["watcher"])
        kind = dict(state["filter"])
        filter = _FILTERS[kind.pop("kind")].from_state(kind)
        clip = state["clip"]
        if clip is not None and len(clip) != 2:
            raise StateRefused("the saved state must clip to a pair of widths")
        if not isinstance(state["open"], bool) or state["noise"] not in ("private", "reproducible"):
            raise StateRefused("the saved state must say whether it is open, and which noise it had")
        ended = read_units(state["ended"])
        # The pure filter counts every run at what the transcript counts it, and perhaps other releases.
        if isinstance(filter, realised.PureFilter) and read_units(kind["sum"]) < ended:
            raise StateRefused("the saved filter has counted less than its runs cost")
        questions = int(one(counts, "questions", state["questions"]))
        door = Clipper(watcher, clip=None if clip is None else (clip[0], clip[1]), outside=state["outside"])
        horizon = check_watcher(watcher, state["horizon"])
        run = None if state["run"] is None else _lost_run(state, door, questions)
        return cls(door, state["resample"], horizon, filter, ended, questions, state["open"], run, state["noise"])


def _lost_run(state: State, door: Clipper, questions: int) -> RunRecord:
    run, horizon = state["run"], state["horizon"]
    _check_fields("the open run", run, {"below", "above", "charge"})
    below, above = (int(one(counts, name, run[name])) for name in ("below", "above"))
    charge = plain_cost("charge", run["charge"])
    if below + above > (questions if horizon is None else min(horizon, questions)):
        raise StateRefused("the saved state has more answers in its open run than there were questions")
    if above > 0 and state["resample"]:
        raise StateRefused("the saved state has an open run beyond the answer that ends it")
    # The charge was cut to what the filter allowed, which is below the computed loss by its rounding at most.
    if not charge >= (1.0 - 1e-6) * loss_table(door.clipped).loss(below, above):
        raise StateRefused("the saved state charges less for its open run than the answers cost")
    return RunRecord(below, above, charge)


def _check_fields(name: str, found: dict[str, Any], wanted: set[str]) -> None:
    if not isinstance(found, dict) or set(found) != wanted:
        raise StateRefused(f"{name} must have the fields {', '.join(sorted(wanted))} and no others")


def signed(state: dict[str, Any], *, key: bytes | None) -> str:
    """The state as JSON, with its format and its digest.

    >>> verified(signed({"spent": 0.5}, key=None), key=None)
    {'spent': 0.5}
    """
    body = {"format": FORMAT, "version": VERSION, **state}
    return json.dumps({**body, "digest": digest(body, key)}, indent=2, allow_nan=False)


def verified(text: str, *, key: bytes | None) -> dict[str, Any]:
    """The state that :func:`signed` wrote; anything else is refused."""
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except (TypeError, ValueError, RecursionError):
        raise StateRefused("the saved state is not JSON") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise StateRefused(f"the saved state must have format {FORMAT!r}")
    if found.get("version") != VERSION or isinstance(found.get("version"), bool):
        raise StateRefused(f"the saved state must have version {VERSION}; got {found.get('version')!r}")
    told = found.pop("digest", None)
    _check_key(key)
    try:
        expected = digest(found, key)
    except ValueError:
        # A number such as 1e999, which reads as infinity and cannot be written.
        raise StateRefused("the saved state holds a number that is not finite") from None
    if not (isinstance(told, str) and told.isascii() and hmac.compare_digest(told, expected)):
        raise StateRefused("the saved state does not match its digest: it was damaged, altered, or has another key")
    return {name: value for name, value in found.items() if name not in ("format", "version")}


def digest(body: dict[str, Any], key: bytes | None) -> str:
    """SHA-256, or HMAC-SHA256 with ``key``, of everything but the digest."""
    _check_key(key)
    written = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    if key is None:
        return "sha256:" + hashlib.sha256(written).hexdigest()
    return "hmac-sha256:" + hmac.new(key, written, hashlib.sha256).hexdigest()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field stands twice")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _check_key(key: bytes | None) -> None:
    if key is not None and (not isinstance(key, bytes) or not key):
        raise refuse("key", "(not shown)", "non-empty bytes")
