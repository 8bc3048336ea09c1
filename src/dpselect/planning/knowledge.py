"""What the planner may know about the values: a profile declared public, or a model.

A plan tuned on the private values would itself tell about them, and nothing would be charged for that. So a profile
must be declared public before it is read.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from dpselect.checks import FloatArray, finite, positive, refuse
from dpselect.errors import NotPublic, SourceError
from dpselect.files import plain_file
from dpselect.mechanisms.selection import Goal
from dpselect.privacy.family import QueryFamily
from dpselect.secrets import shown

ModelKind: TypeAlias = Literal["worst-case", "uniform", "seasonal"]

_NOT_PUBLIC = (
    "a plan may only be tuned on public values: declare them so with ‹public› if anyone may see them "
    "(past releases, another city, simulated data), never the values that the mechanism will run on; or use a model"
)
#: Models are drawn with this seed, so that a plan can be made again.
_SEED = 20240519
#: The share of questions above the threshold that models assume by default.
USUAL_SHARE = 0.1
#: How far a season moves values where nothing is known: the busiest time is twice the quietest. Below a line that is
#: reached now and then values therefore move by about half of what the line is above the least value.
USUAL_SWING = 0.5
#: How much of the range the means of people move through where nothing is known. With readings of persons that differ
#: by a factor e either way (log-normal, σ = 1) and a cap that cuts one in a hundred, the mean is 0.156 of the cap; a
#: season of a factor two around it spans 0.11 of the cap.
USUAL_SPAN = 0.11


@dataclass(frozen=True)
class Profile:
    """Past values that are public.

    Parameters
    ----------
    values : sequence of float
        The values, in order for a stream. Kept as a tuple.
    public : bool
        Must be ``True``: the declaration that anyone may see these values.

    Examples
    --------
    >>> Profile([0.2, 0.7, 0.4], public=True).values
    (0.2, 0.7, 0.4)
    >>> Profile([0.2, 0.7, 0.4])
    Traceback (most recent call last):
    ...
    dpselect.errors.NotPublic: a plan may only be tuned on public values: declare them so ...
    """

    values: tuple[float, ...]
    public: bool = False

    def __post_init__(self) -> None:
        # Nothing is read before the declaration: not even an error may depend on private values.
        if self.public is not True:
            raise NotPublic(_NOT_PUBLIC)
        numbers = finite("values", np.asarray(self.values))
        if numbers.ndim != 1:
            raise refuse("values", self.values, "a flat list of numbers")
        object.__setattr__(self, "values", tuple(numbers.tolist()))

    def __repr__(self) -> str:
        return f"Profile(<{len(self.values)} values>, public=True)"


@dataclass(frozen=True, kw_only=True)
class Model:
    """Values made up from a few public numbers, where there is no public profile.

    Parameters
    ----------
    kind : {"seasonal", "uniform", "worst-case"}
        A yearly wave with ripples; values spread evenly; or every value as near as ``margin`` to where it
        matters: the runners-up to the best, the stream to its threshold.
    margin : float, optional
        For the worst case, in the unit of the values; a tenth of the range if left out.
    low, high : float, optional
        Between which the seasonal values are expected to lie; of a stream one in ten is then supposed to reach its
        threshold, unless a share says otherwise. Left out, nothing is known of them: a stream moves by
        half of what its threshold is above the least value, and candidates by a ninth of the range, from the least.

    Examples
    --------
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> Model(kind="worst-case", margin=0.25).candidates(family, count=4).tolist()
    [0.75, 1.0, 0.75, 0.75]
    """

    kind: ModelKind = "seasonal"
    margin: float | None = None
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(ModelKind):
            raise refuse("kind", self.kind, "one of " + ", ".join(get_args(ModelKind)))
        if self.margin is not None:
            if self.kind != "worst-case":
                raise refuse("margin", self.margin, "given with the worst case only")
            object.__setattr__(self, "margin", float(positive("margin", self.margin)))
        if (self.low is None) != (self.high is None):
            raise refuse("high", self.high, "given together with ‹low›")
        if self.low is not None and self.high is not None:
            if self.kind != "seasonal":
                raise refuse("low", self.low, "given with the seasonal model only")
            low, high = float(finite("low", self.low)), float(finite("high", self.high))
            if low >= high:
                raise refuse("high", self.high, f"above ‹low›, {self.low!r}")
            object.__setattr__(self, "low", low)
            object.__setattr__(self, "high", high)

    def _between(self, family: QueryFamily, shares: FloatArray, *, span: float) -> FloatArray:
        """Shares of the expected range as values; of ``span``, from the least value, where no range is known."""
        low, high = (
            (family.lower, family.lower + span) if self.low is None or self.high is None else (self.low, self.high)
        )
        return np.asarray(np.clip(low + (high - low) * shares, family.lower, family.upper))

    def _margin(self, family: QueryFamily) -> float:
        if self.margin is None:
            return 0.1 * family.width
        if self.margin >= family.width:
            raise refuse("margin", self.margin, f"below the width of the range, {family.width!r}")
        return self.margin

    def candidates(self, family: QueryFamily, *, count: int, seed: int = 0) -> FloatArray:
        """Values of ``count`` candidates; with another ``seed``, others of the same kind."""
        generator = np.random.default_rng(_SEED + seed)
        if self.kind == "worst-case":
            values = np.full(count, family.upper - self._margin(family))
            values[count // 3] = family.upper
            return values
        if self.kind == "uniform":
            shares = (np.arange(count) + 0.5) / count
            return family.lower + family.width * generator.permutation(shares)
        return self._between(family, _wave(count, generator), span=USUAL_SPAN * family.width)

    def stream(self, family: QueryFamily, *, count: int, threshold: float, share: float | None = None) -> FloatArray:
        """Values of ``count`` questions, of which a ``share`` lies at or above the threshold.

        Without a share, one in ten: that values lie within a range does not say how many of them are high.
        """
        generator = np.random.default_rng(_SEED)
        if self.kind == "seasonal":
            wave, wanted = _wave(count, generator), USUAL_SHARE if share is None else share
            if share is None and self.low is not None and self.high is not None and self.low < threshold < self.high:
                bent = _bent(wave, ends=(self.low, threshold, self.high), share=wanted)
                return np.asarray(np.clip(bent, family.lower, family.upper))
            values = self._between(family, wave, span=USUAL_SWING * (threshold - family.lower))
            return moved_to_share(values, family, threshold=threshold, share=wanted)
        tops = min(count, max(1, round((USUAL_SHARE if share is None else share) * count)))
        if self.kind == "worst-case":
            margin = self._margin(family)
            values = np.repeat([threshold + margin, threshold - margin], [tops, count - tops])
        else:
            high = threshold + (family.upper - threshold) * (np.arange(tops) + 0.5) / tops
            low = threshold - (threshold - family.lower) * (np.arange(count - tops) + 0.5) / max(1, count - tops)
            values = np.concatenate([high, low])
        return np.asarray(np.clip(generator.permutation(values), family.lower, family.upper))


#: How many series are made up for a selection. How often the very largest is found depends on how far the next one lies
#: below it, which differs from series to series: one alone would promise too much, or too little.
_SERIES = 20


def made_up(family: QueryFamily, *, count: int, public: Profile | Model) -> list[FloatArray]:
    """The series a selection is tried on: the public one, repeated or cut to ``count``, or several of the model.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> [one.tolist() for one in made_up(family, count=3, public=Profile([0.1, 0.2], public=True))]
    [[0.1, 0.2, 0.1]]
    """
    if isinstance(public, Profile):
        return [np.resize(np.clip(np.array(public.values), family.lower, family.upper), count)]
    # With a million candidates a few series take long enough.
    number = max(1, min(_SERIES, 2_000_000 // count)) if public.kind == "seasonal" else 1
    return [public.candidates(family, count=count, seed=seed) for seed in range(number)]


def with_flat_ends(series: Sequence[FloatArray], *, goal: Goal) -> list[FloatArray]:
    """The same, every other series flat at the end that is looked for, between the same ends.

    A wave alone has one high season and one low one. Much that people do follows a season on one side only (heating
    below some temperature, a plant at its capacity) and has many near ties on the other.

    >>> [one.tolist() for one in with_flat_ends([np.array([0.0, 0.5, 1.0])] * 2, goal="smallest")]
    [[0.0, 0.5, 1.0], [0.0, 0.25, 1.0]]
    """
    made = []
    for number, values in enumerate(series):
        low, spread = float(values.min()), float(np.ptp(values))
        if number % 2 == 0 or not spread > 0:
            made.append(values)
            continue
        shares = (values - low) / spread
        bent = shares**2 if goal == "smallest" else 1.0 - (1.0 - shares) ** 2
        made.append(low + spread * bent)
    return made


def _wave(count: int, generator: np.random.Generator) -> FloatArray:
    """A year's wave with ripples that last some days, within [0, 1]."""
    period = min(365.0, float(count))
    ripple, ripples = 0.0, []
    for step in generator.standard_normal(count).tolist():
        ripple = 0.7 * ripple + step
        ripples.append(ripple)
    raw = 0.28 * np.sin(2.0 * np.pi * (np.arange(count) / period - 0.3)) + 0.07 * np.array(ripples)
    spread = float(np.ptp(raw))
    return np.asarray((raw - raw.min()) / spread if spread > 0 else np.full(count, 0.5))


def _bent(wave: FloatArray, *, ends: tuple[float, float, float], share: float) -> FloatArray:
    """A wave within [0, 1] as values between the outer two, of which a ``share`` reaches the one in the middle.

    >>> _bent(np.array([0.0, 0.25, 0.75, 1.0]), ends=(0.0, 8.0, 10.0), share=0.5).tolist()
    [0.0, 4.0, 9.0, 10.0]
    """
    level = _between_answers(wave, share)
    if not 0.0 < level < 1.0:
        return np.where(wave >= level, ends[1], ends[0])
    return np.asarray(np.interp(wave, [0.0, level, 1.0], ends))


def _between_answers(values: FloatArray, share: float) -> float:
    """The line that a ``share`` of the values reaches, half-way to the next one below it.

    A line is drawn without looking at where values lie. A value right on it would be ⊤ half of the time, and where
    few are above, the prediction would mostly depend on that one.
    """
    tops = min(len(values), max(1, round(share * len(values))))
    ordered = np.sort(values)[::-1]
    return float(ordered[tops - 1] + ordered[min(tops, len(values) - 1)]) / 2.0


def moved_to_share(values: FloatArray, family: QueryFamily, *, threshold: float, share: float) -> FloatArray:
    """The stream, its level moved so that a ``share`` of it reaches the threshold, cut to the range.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> moved_to_share(np.array([0.1, 0.2, 0.3, 0.4]), family, threshold=0.5, share=0.5).round(2).tolist()
    [0.35, 0.45, 0.55, 0.65]
    """
    level = _between_answers(values, share)
    # Differences first: values on the level then meet the threshold exactly.
    return np.asarray(np.clip((values - level) + threshold, family.lower, family.upper))


def read_profile(path: Path | str, *, public: bool, column: str | None = None, maximum: float | None = None) -> Profile:
    """A profile from a text file of numbers, a JSON list, or a column of a CSV file.

    Parameters
    ----------
    path : path
        The file. It is not opened unless ``public`` is ``True``.
    public : bool
        The declaration that anyone may see these values.
    column : str, optional
        Which column of a CSV file.
    maximum : float, optional
        A public number to divide the values by.
    """
    if public is not True:
        raise NotPublic(_NOT_PUBLIC)
    if not isinstance(path, str | Path):
        raise refuse("path", path, "the name of a file")
    place = plain_file(path)
    try:
        text = place.read_text(encoding="utf-8-sig")
        values = _numbers_in(text, column=column, is_json=place.suffix == ".json")
    except (OSError, UnicodeDecodeError) as failure:
        why = getattr(failure, "strerror", None) or "it is no UTF-8 text"
        raise SourceError(f"cannot read the profile {shown(path)} ({why})") from None
    except (ValueError, KeyError) as failure:
        raise SourceError(
            f"the profile {shown(path)} must hold one number per line, a JSON list, or the CSV column named; {failure}"
        ) from None
    scale = 1.0 if maximum is None else float(positive("maximum", maximum))
    return Profile(tuple(value / scale for value in values), public=True)


def _numbers_in(text: str, *, column: str | None, is_json: bool) -> list[float]:
    if is_json:
        return [float(value) for value in json.loads(text)]
    if column is None:
        return [float(line) for line in text.split()]
    rows = csv.DictReader(text.splitlines())
    return [float(row[column]) for row in rows]


def knowledge_from(described: Mapping[str, Any]) -> Profile | Model:
    """The profile or model that :func:`knowledge_as` described; a profile needs ``public = true``."""
    known = {"values", "public", "model", "margin", "low", "high"}
    strangers = sorted(set(described) - known)
    if strangers:
        raise refuse("public knowledge", strangers, "described by " + ", ".join(sorted(known)))
    if "values" in described:
        if "model" in described:
            raise refuse("model", described["model"], "left out where values are given")
        return Profile(tuple(described["values"]), public=described.get("public", False))
    ends = {name: described.get(name) for name in ("margin", "low", "high")}
    return Model(kind=described.get("model", "seasonal"), **ends)


def knowledge_as(knowledge: Profile | Model) -> dict[str, Any]:
    """Plain values for TOML and JSON."""
    if isinstance(knowledge, Profile):
        return {"values": list(knowledge.values), "public": True}
    ends = {name: getattr(knowledge, name) for name in ("margin", "low", "high")}
    return {"model": knowledge.kind} | {name: value for name, value in ends.items() if value is not None}
