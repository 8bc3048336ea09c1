"""``dpselect epsilon``: what a release costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from dpselect.cli import options, screen
from dpselect.cli.numbers import no_more_than, shown
from dpselect.errors import InvalidParameter
from dpselect.report.rounding import at_least, at_most

if TYPE_CHECKING:
    from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
    from dpselect.numerics.enclosure import Enclosure
    from dpselect.privacy.family import QueryFamily

SQUARE_ROOT_OF_3 = 3**0.5


def epsilon(
    sensitivity: options.Sensitivity,
    candidates: options.Candidates = None,
    horizon: options.Horizon = None,
    below: options.Below = None,
    above: options.Above = None,
    threshold: options.ThresholdAt = None,
    sigma: options.Sigma = None,
    sigma_threshold: options.SigmaThreshold = None,
    sigma_query: options.SigmaQuery = None,
    lower: options.Lower = Fraction(0),
    upper: options.Upper = Fraction(1),
    monotone: options.Monotone = False,
    delta: options.Delta = None,
    certify: options.Certify = False,
    as_json: options.AsJson = False,
) -> None:
    """What a release costs, as an upper bound on ε.

    Noisy max (which of d is largest):

      [dim]$[/dim] dpselect epsilon --candidates 365 --sigma 0.1 --sensitivity 1/1000

    Above threshold (when is the line crossed):

      [dim]$[/dim] dpselect epsilon --horizon 50 --threshold 0.5 --sigma-threshold 0.2
        --sensitivity 1/1000

    In Python: GaussianNoisyMax.epsilon, GaussianAboveThreshold.epsilon and .loss.
    """
    from dpselect.privacy.family import QueryFamily

    mode = chosen_mode(candidates=candidates, horizon=horizon, below=below, above=above)
    family = QueryFamily(
        lower=lower,  # type: ignore[arg-type]  # fractions are taken, and rounded to the safe side
        upper=upper,  # type: ignore[arg-type]
        sensitivity=sensitivity,  # type: ignore[arg-type]
        monotone=monotone,
    )
    if mode == "candidates":
        refuse_given("noisy max", threshold=threshold, sigma_threshold=sigma_threshold, sigma_query=sigma_query)
        rows = _noisy_max(family, needed("sigma", sigma), candidates or (), delta, certify)
    else:
        refuse_given("above threshold", sigma=sigma)
        noise = float(needed("sigma_threshold", sigma_threshold))
        watcher = _watcher(family, needed("threshold", threshold), noise, sigma_query)
        rows = (
            _capped(watcher, horizon, delta, certify)
            if horizon is not None
            else _transcripts(watcher, below or (0,), above or 0, delta, certify)
        )
    if as_json:
        for row in rows:
            screen.emit(row)
        return
    show_costs(rows, title=_title(family, mode))


def chosen_mode(*, candidates: object, horizon: object, below: object, above: object) -> str:
    """Which of the three ways of asking was used; refuses none and several."""
    transcript = below is not None or above is not None
    given = [
        name
        for name, there in (
            ("candidates", candidates is not None),
            ("horizon", horizon is not None),
            ("below/above", transcript),
        )
        if there
    ]
    if len(given) != 1:
        found = " and ".join(f"--{name}" for name in given) or "none"
        raise InvalidParameter(
            f"give one of --candidates (noisy max), --horizon or --below/--above (above threshold); got {found}"
        )
    return given[0]


def needed(name: str, value: Fraction | None) -> Fraction:
    """An option this way of asking cannot do without."""
    if value is None:
        raise InvalidParameter(f"--{name.replace('_', '-')} must be given here")
    return value


def refuse_given(here: str, **values: object) -> None:
    """Options that mean nothing for ``here`` are refused, not ignored."""
    for name, value in values.items():
        if value is not None:
            raise InvalidParameter(f"--{name.replace('_', '-')} does not go with {here}; leave it out")


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


def _title(family: QueryFamily, mode: str) -> str:
    what = "Gaussian noisy max" if mode == "candidates" else "Gaussian above threshold"
    return f"{what} over {family_in_words(family)}"


def family_in_words(family: QueryFamily) -> str:
    """The family's public promises in a few words."""
    ends = ", ".join(shown(Fraction(repr(end))) for end in (family.lower, family.upper))
    direction = ", monotone" if family.monotone else ""
    return f"queries in [{ends}], Δ ≤ {at_most(family.sensitivity, digits=6)}{direction}"
