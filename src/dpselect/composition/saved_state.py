"""What a sparse vector leaves behind when it is saved, as plain data: parameters, counts and exact sums, all public.

The secret noise is not in it, so an open run cannot be continued; restoring charges it and ends it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dpselect.checks import counts, one
from dpselect.composition import declared, realised
from dpselect.composition.clipping import Clipper
from dpselect.composition.costs import plain_cost
from dpselect.composition.exact_sum import read_units
from dpselect.composition.filter import Filter, State, check_watcher
from dpselect.composition.loss_table import loss_table
from dpselect.composition.transcript import RunRecord
from dpselect.errors import DPSelectError, StateRefused
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.outcomes import Noise

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

    def state(self) -> State:
        """Plain numbers and strings, ready for JSON."""
        run, kind = self.run, self.filter.name
        if _FILTERS.get(kind) is not type(self.filter):
            raise StateRefused(f"a {type(self.filter).__name__} cannot be saved: only the filters of this package can")
        return {
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

    @classmethod
    def from_state(cls, state: State) -> SavedVector:
        """What :meth:`state` described; anything else is refused."""
        try:
            return cls._read(state)
        except StateRefused:
            raise
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, DPSelectError) as problem:
            raise StateRefused(f"the saved state is not usable: {problem}") from None

    @classmethod
    def _read(cls, state: State) -> SavedVector:
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
