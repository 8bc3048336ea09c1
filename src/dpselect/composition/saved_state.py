"""A sparse vector's budget on paper: versioned JSON with a digest.

What is written is public: parameters, counts, and exact sums. The secret noise is not in it, so an open run cannot be
continued; restoring charges it and ends it.

The digest is SHA-256 over everything else in the file. It catches damage and careless edits. With ``key`` it is
HMAC-SHA256, which also catches deliberate edits by anyone without the key. Neither can tell an old file from the
newest one: restoring the same file twice spends the same budget twice. Where that matters, keep the newest state in a
place that only moves forward, such as a ledger.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from dpselect.checks import counts, one, refuse
from dpselect.composition.costs import plain_cost
from dpselect.composition.declared import AdvancedFilter, GaussianFilter, RenyiFilter, ZCDPFilter
from dpselect.composition.exact_sum import ExactSum
from dpselect.composition.filter import Filter, Watcher
from dpselect.composition.loss_table import loss_table
from dpselect.composition.realised import PublishedReportingFilter, PureFilter, RepairedReportingFilter
from dpselect.composition.sparse_vector import SparseVector
from dpselect.composition.transcript import RunRecord, Transcript
from dpselect.errors import DPSelectError, StateRefused
from dpselect.mechanisms.exponential_above_threshold import ExponentialAboveThreshold
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.laplace_above_threshold import LaplaceAboveThreshold
from dpselect.noise.entropy import Entropy
from dpselect.privacy.family import QueryFamily

FORMAT = "dpselect sparse vector"
VERSION = 1

_FILTERS: dict[str, type[Filter]] = {
    kind.name: kind
    for kind in (
        PureFilter,
        RepairedReportingFilter,
        PublishedReportingFilter,
        AdvancedFilter,
        RenyiFilter,
        ZCDPFilter,
        GaussianFilter,
    )
}
_FIELDS = {
    "format",
    "version",
    "watcher",
    "clip",
    "outside",
    "resample",
    "horizon",
    "filter",
    "ended",
    "questions",
    "open",
    "run",
    "noise",
}
_WATCHERS: dict[str, type[Watcher]] = {
    "gaussian": GaussianAboveThreshold,
    "laplace": LaplaceAboveThreshold,
    "exponential": ExponentialAboveThreshold,
}


def save(svt: SparseVector, *, key: bytes | None) -> str:
    """The state as JSON."""
    run, plan, door = svt._run, svt._plan, svt._door
    filter_name = svt._filter.name
    if _FILTERS.get(filter_name) is not type(svt._filter):
        raise StateRefused(f"a {type(svt._filter).__name__} cannot be saved: only the filters of this package can")
    body = {
        "format": FORMAT,
        "version": VERSION,
        "watcher": _watcher_state(door.watcher),
        "clip": door.clip,
        "outside": door.outside,
        "resample": plan.resample,
        "horizon": plan.horizon,
        # Without the open run, whose charge stands below.
        "filter": {"kind": filter_name, **svt._filter._state()},
        "ended": hex(svt._transcript.ended.units),
        # An interruption may have kept an answer from being written down as given.
        "questions": max(svt.questions, 0 if run is None else run.below + run.above),
        "open": svt._open,
        "run": None if run is None else {"below": run.below, "above": run.above, "charge": run.spent},
        "noise": svt._noise,
    }
    return json.dumps({**body, "digest": _digest(body, key)}, indent=2, allow_nan=False)


def restore(text: str, *, key: bytes | None, entropy: Entropy) -> SparseVector:
    """The sparse vector that was saved, its open run charged and ended."""
    body = _verified(text, key)
    try:
        _check_fields("the state", body, _FIELDS)
        watcher = _watcher_from(body["watcher"])
        kind = dict(body["filter"])
        filter = _FILTERS[kind.pop("kind")].from_state(kind)
        if body["clip"] is not None and len(body["clip"]) != 2:
            raise StateRefused("the saved state must clip to a pair of widths")
        if not isinstance(body["open"], bool) or body["noise"] not in ("private", "reproducible"):
            raise StateRefused("the saved state must say whether it is open, and which noise it had")
        svt = SparseVector(
            watcher,
            filter=filter,
            resample=body["resample"],
            clip=None if body["clip"] is None else (body["clip"][0], body["clip"][1]),
            horizon=body["horizon"],
            outside=body["outside"],
            entropy=entropy,
        )
        svt._transcript = Transcript(
            questions=int(one(counts, "questions", body["questions"])), ended=ExactSum(int(body["ended"], 16))
        )
        # The pure filter counts every run at what the transcript counts it, and perhaps other releases.
        if isinstance(filter, PureFilter) and int(filter._state()["sum"], 16) < svt._transcript.ended.units:
            raise StateRefused("the saved filter has counted less than its runs cost")
        svt._open = body["open"]
        if body["noise"] != "private":
            svt._noise = "reproducible"
        if body["run"] is not None:
            _charge_lost_run(svt, body["run"])
    except StateRefused:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, DPSelectError) as problem:
        raise StateRefused(f"the saved state is not usable: {problem}") from None
    return svt


def _charge_lost_run(svt: SparseVector, run: dict[str, Any]) -> None:
    _check_fields("the open run", run, {"below", "above", "charge"})
    below, above = (int(one(counts, name, run[name])) for name in ("below", "above"))
    charge = plain_cost("charge", run["charge"])
    horizon = svt._plan.horizon
    if below + above > (svt.questions if horizon is None else min(horizon, svt.questions)):
        raise StateRefused("the saved state has more answers in its open run than there were questions")
    if above > 0 and svt._plan.resample:
        raise StateRefused("the saved state has an open run beyond the answer that ends it")
    # The charge was cut to what the filter allowed, which is below the computed loss by its rounding at most.
    if not charge >= (1.0 - 1e-6) * loss_table(svt._plan.watcher).loss(below, above):
        raise StateRefused("the saved state charges less for its open run than the answers cost")
    svt._filter._books = svt._filter._after_run(svt._filter._books, charge)
    svt._transcript.end_run(RunRecord(below, above, charge))


def _check_fields(name: str, found: dict[str, Any], wanted: set[str]) -> None:
    if not isinstance(found, dict) or set(found) != wanted:
        raise StateRefused(f"{name} must have the fields {', '.join(sorted(wanted))} and no others")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field stands twice")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _verified(text: str, key: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except (TypeError, ValueError, RecursionError):
        raise StateRefused("the saved state is not JSON") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise StateRefused(f"the saved state must have format {FORMAT!r}")
    if found.get("version") != VERSION or isinstance(found.get("version"), bool):
        raise StateRefused(f"the saved state must have version {VERSION}; got {found.get('version')!r}")
    digest = found.pop("digest", None)
    _check_key(key)
    try:
        expected = _digest(found, key)
    except ValueError:
        # A number such as 1e999, which reads as infinity and cannot be written.
        raise StateRefused("the saved state holds a number that is not finite") from None
    if not (isinstance(digest, str) and digest.isascii() and hmac.compare_digest(digest, expected)):
        raise StateRefused("the saved state does not match its digest: it was damaged, altered, or has another key")
    return found


def _digest(body: dict[str, Any], key: bytes | None) -> str:
    _check_key(key)
    written = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    if key is None:
        return "sha256:" + hashlib.sha256(written).hexdigest()
    return "hmac-sha256:" + hmac.new(key, written, hashlib.sha256).hexdigest()


def _check_key(key: bytes | None) -> None:
    if key is not None and (not isinstance(key, bytes) or not key):
        raise refuse("key", "(not shown)", "non-empty bytes")


def _watcher_state(watcher: Watcher) -> dict[str, Any]:
    family = watcher.family
    kind = next((name for name, known in _WATCHERS.items() if known is type(watcher)), None)
    if kind is None:
        raise StateRefused(f"a {type(watcher).__name__} cannot be saved: only the mechanisms of this package can")
    return {
        "kind": kind,
        "lower": family.lower,
        "upper": family.upper,
        "sensitivity": family.sensitivity,
        "monotone": family.monotone,
        "threshold": watcher.threshold,
        **{name: getattr(watcher, name) for name in watcher.noise_names},
    }


def _watcher_from(state: dict[str, Any]) -> Watcher:
    kind = _WATCHERS[state["kind"]]
    family = QueryFamily(
        lower=state["lower"], upper=state["upper"], sensitivity=state["sensitivity"], monotone=state["monotone"]
    )
    noise = {name: state[name] for name in kind.noise_names}
    watcher = kind(family, threshold=state["threshold"], **noise)
    if _watcher_state(watcher) != state:
        raise StateRefused("the saved mechanism has unknown fields or numbers that do not fit together")
    return watcher
