"""``dpselect epsilon``: what a release costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from dpselect.cli import screen
from dpselect.cli.numbers import Count, Counts, Number
from dpselect.cli.options import AsJson, Family, needed
from dpselect.errors import InvalidParameter, refuse_given
from dpselect.report.rounding import at_least, at_most, no_more_than
from dpselect.report.words import family_in_words

if TYPE_CHECKING:
    from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
    from dpselect.numerics.enclosure import Enclosure
    from dpselect.privacy.family import QueryFamily

SQUARE_ROOT_OF_3 = 3**0.5


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Asked:
    """The release whose cost or noise is asked for: one of three ways to say it.

    Parameters
    ----------
    candidates
        Noisy max: among how many (D); a list gives a table.
    horizon
        Above threshold: cost known beforehand, of a run that stops at the first ⊤ or after H questions.
    below
        Above threshold: cost of a run that answered M ⊥ …
    above
        … and K ⊤.
    threshold
        Above threshold: the public threshold (ρ).
    """

    candidates: Counts | None = None
    horizon: Counts | None = None
    below: Counts | None = None
    above: Count | None = None
    threshold: Number | None = None

    @property
    def mode(self) -> str:
        """Which of the three ways was used; refuses none and several."""
        transcript = self.below is not None or self.above is not None
        ways = {
            "candidates": self.candidates is not None,
            "horizon": self.horizon is not None,
            "below/above": transcript,
        }
        given = [name for name, there in ways.items() if there]
        if len(given) != 1:
            found = " and ".join(f"--{name}" for name in given) or "none"
            raise InvalidParameter(
                f"give one of --candidates (noisy max), --horizon or --below/--above (above threshold); got {found}"
            )
        return given[0]


@Parameter(name="*", group=Group("Noise", sort_key=3))
@dataclass(frozen=True, kw_only=True)
class Noise:
    """The noise whose cost is asked for.

    Parameters
    ----------
    sigma
        Noisy max: noise of each candidate (σ).
    sigma_threshold
        Above threshold: noise of the threshold (σ_X).
    sigma_query
        Above threshold: noise of each question (σ_Z); σ_X·√3 if left out.
    """

    sigma: Number | None = None
    sigma_threshold: Number | None = None
    sigma_query: Number | None = None


def epsilon(
    *,
    asked: Asked = Asked(),  # noqa: B008 - frozen
    family: Family = Family(),  # noqa: B008
    noise: Noise = Noise(),  # noqa: B008
    delta: Annotated[Number | None, Parameter(help="Also show the smaller ε that holds up to δ.")] = None,
    certify: Annotated[bool, Parameter(help="Also enclose the pure ε between two proven numbers.")] = False,
    as_json: AsJson = False,
) -> None:
    """What a release costs, as an upper bound on ε.

    Noisy max (which of d is largest):

      $ dpselect epsilon --candidates 365 --sigma 0.1 --sensitivity 1/1000

    Above threshold (when is the line crossed):

      $ dpselect epsilon --horizon 50 --threshold 0.5 --sigma-threshold 0.2
        --sensitivity 1/1000

    In Python: GaussianNoisyMax.epsilon, GaussianAboveThreshold.epsilon and .loss.
    """
    mode, queries = asked.mode, family.family()
    if mode == "candidates":
        unused = {"threshold": asked.threshold, "sigma_threshold": noise.sigma_threshold}
        refuse_given("noisy max", **unused, sigma_query=noise.sigma_query)
        rows = _noisy_max(queries, needed("sigma", noise.sigma), asked.candidates or (), delta, certify)
    else:
        refuse_given("above threshold", sigma=noise.sigma)
        of_line = float(needed("sigma_threshold", noise.sigma_threshold))
        watcher = _watcher(queries, needed("threshold", asked.threshold), of_line, noise.sigma_query)
        rows = (
            _capped(watcher, asked.horizon, delta, certify)
            if asked.horizon is not None
            else _transcripts(watcher, asked.below or (0,), asked.above or 0, delta, certify)
        )
    if as_json:
        for row in rows:
            screen.emit(row)
        return
    what = "Gaussian noisy max" if mode == "candidates" else "Gaussian above threshold"
    show_costs(rows, title=f"{what} over {family_in_words(queries)}")


def _watcher(
    family: QueryFamily, threshold: Fraction, noise: float, sigma_query: Fraction | None
) -> GaussianAboveThreshold:
    from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold

    return GaussianAboveThreshold(
        family,
        threshold=float(threshold),
        sigma_threshold=noise,
        sigma_query=SQUARE_ROOT_OF_3 * noise if sigma_query is None else float(sigma_query),
    )


def _noisy_max(
    family: QueryFamily, sigma: Fraction, candidates: Sequence[int], delta: Fraction | None, certify: bool
) -> list[dict[str, Any]]:
    from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax

    picker = GaussianNoisyMax(family, sigma=float(sigma))
    return [
        _row(
            {"candidates": d, "sigma": picker.sigma},
            pure=picker.epsilon(candidates=d),
            approximate=None if delta is None else picker.approximate_epsilon(delta=no_more_than(delta), candidates=d),
            delta=delta,
            certify=partial(picker.certify, candidates=d) if certify else None,
        )
        for d in candidates
    ]


def _capped(
    watcher: GaussianAboveThreshold, horizons: Sequence[int], delta: Fraction | None, certify: bool
) -> list[dict[str, Any]]:
    def enclosure(h: int) -> Enclosure:
        from dpselect.numerics.enclosure import Enclosure

        ends = [watcher.certify(below=h - 1, above=1), watcher.certify(below=h, above=0)]
        return Enclosure(max(one.lower for one in ends), max(one.upper for one in ends))

    return [
        _row(
            {"horizon": h, "sigma_threshold": watcher.sigma_threshold, "sigma_query": watcher.sigma_query},
            pure=watcher.epsilon(horizon=h),
            approximate=None if delta is None else watcher.approximate_epsilon(delta=no_more_than(delta), horizon=h),
            delta=delta,
            certify=partial(enclosure, h) if certify else None,
        )
        for h in horizons
    ]


def _transcripts(
    watcher: GaussianAboveThreshold, below: Sequence[int], above: int, delta: Fraction | None, certify: bool
) -> list[dict[str, Any]]:
    if delta is not None:
        raise InvalidParameter("--delta does not go with --below/--above: a known transcript has a pure cost")
    return [
        _row(
            {
                "below": m,
                "above": above,
                "sigma_threshold": watcher.sigma_threshold,
                "sigma_query": watcher.sigma_query,
            },
            pure=watcher.loss(below=m, above=above),
            approximate=None,
            delta=None,
            certify=partial(watcher.certify, below=m, above=above) if certify else None,
        )
        for m in below
    ]


def _row(
    what: dict[str, Any],
    *,
    pure: Any,
    approximate: Any,
    delta: Fraction | None,
    certify: Callable[[], Enclosure] | None,
) -> dict[str, Any]:
    row = {**what, "epsilon": float(pure)}
    if approximate is not None and delta is not None:
        row |= {"delta": no_more_than(delta), "epsilon_at_delta": float(approximate)}
    if certify is not None:
        found = certify()
        row |= {"certified_lower": float(found.lower), "certified_upper": float(found.upper)}
    return row


_HEADINGS = {
    "candidates": "candidates",
    "horizon": "horizon",
    "below": "⊥",
    "above": "⊤",
    "sigma": "σ",
    "sigma_threshold": "σ_X",
    "sigma_query": "σ_Z",
    "epsilon": "pure ε ≤",
}


def show_costs(rows: Sequence[dict[str, Any]], *, title: str) -> None:
    """Costs as a table; ε and δ rounded up, the lower end of an enclosure down."""
    first = rows[0]
    columns = [heading for key, heading in _HEADINGS.items() if key in first]
    cells = [[_cell(key, row[key]) for key in _HEADINGS if key in row] for row in rows]
    if "epsilon_at_delta" in first:
        columns.append(f"ε ≤ at δ = {at_most(first['delta'])}")
        for line, row in zip(cells, rows, strict=True):
            line.append(at_most(row["epsilon_at_delta"], digits=6))
    if "certified_upper" in first:
        columns += ["certified: ε ≥", "ε ≤"]
        for line, row in zip(cells, rows, strict=True):
            line.append(at_least(row["certified_lower"], digits=10))
            line.append(at_most(row["certified_upper"], digits=10))
    screen.table(title, columns, cells, note="ε is an upper bound, rounded up.")


def _cell(key: str, value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return at_most(value, digits=6)
