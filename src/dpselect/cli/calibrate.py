"""``dpselect calibrate``: the least noise for a given ε."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, TypeVar

import typer

from dpselect.cli import options, screen
from dpselect.cli.epsilon import chosen_mode, family_in_words, needed, refuse_given, show_costs
from dpselect.cli.numbers import no_more_than, read_number
from dpselect.report.rounding import at_most, rounded_up

_Mechanism = TypeVar("_Mechanism")


def calibrate(
    sensitivity: options.Sensitivity,
    epsilon: Annotated[
        Fraction,
        typer.Option("--epsilon", parser=read_number, metavar="ε", help="The most the release may cost, pure."),
    ],
    candidates: options.Candidates = None,
    horizon: options.Horizon = None,
    below: options.Below = None,
    above: options.Above = None,
    threshold: options.ThresholdAt = None,
    ratio: Annotated[
        Fraction | None,
        typer.Option("--ratio", parser=read_number, metavar="σ_Z/σ_X", help="Above threshold; √3 if left out."),
    ] = None,
    lower: options.Lower = Fraction(0),
    upper: options.Upper = Fraction(1),
    monotone: options.Monotone = False,
    certify: options.Certify = False,
    as_json: options.AsJson = False,
) -> None:
    """The least noise with which a release costs at most ε.

      [dim]$[/dim] dpselect calibrate --candidates 365 --epsilon 0.1 --sensitivity 1/6946

      [dim]$[/dim] dpselect calibrate --horizon 365 --threshold 0.575 --epsilon 0.5
        --sensitivity 1/6946 --monotone

    In Python: GaussianNoisyMax.calibrated, GaussianAboveThreshold.calibrated.
    """
    from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
    from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax
    from dpselect.privacy.family import QueryFamily

    mode = chosen_mode(candidates=candidates, horizon=horizon, below=below, above=above)
    family = QueryFamily(
        lower=lower,  # type: ignore[arg-type]  # fractions are taken, and rounded to the safe side
        upper=upper,  # type: ignore[arg-type]
        sensitivity=sensitivity,  # type: ignore[arg-type]
        monotone=monotone,
    )
    target = no_more_than(epsilon)
    rows: list[dict[str, Any]] = []
    if mode == "candidates":
        refuse_given("noisy max", threshold=threshold, ratio=ratio)
        for d in candidates or ():
            least = GaussianNoisyMax.calibrated(family, candidates=d, epsilon=target)
            trials = (GaussianNoisyMax(family, sigma) for sigma in _shorter(least.sigma))
            picker = _first_within(target, [*trials, least], partial(GaussianNoisyMax.epsilon, candidates=d))
            row = {"candidates": d, "sigma": picker.sigma, "epsilon": float(picker.epsilon(candidates=d))}
            rows.append(row | (_ends(picker.certify(candidates=d)) if certify else {}))
    else:
        proportion = 3**0.5 if ratio is None else float(ratio)
        line = float(needed("threshold", threshold))

        for m in horizon or below or (0,):
            k = above or 0
            asked = {"horizon": m} if horizon else {"below": m, "above": k}
            least_noise = GaussianAboveThreshold.calibrated(
                family, threshold=line, epsilon=target, ratio=proportion, **asked
            )

            def cost(trial: GaussianAboveThreshold, m: int = m, k: int = k) -> float:
                return float(trial.epsilon(horizon=m) if horizon else trial.loss(below=m, above=k))

            attempts = (
                GaussianAboveThreshold(
                    family, threshold=line, sigma_threshold=sigma, sigma_query=rounded_up(proportion * sigma)
                )
                for sigma in _shorter(least_noise.sigma_threshold)
            )
            kept = _first_within(target, [*attempts, least_noise], cost)
            row = {
                **asked,
                "sigma_threshold": kept.sigma_threshold,
                "sigma_query": kept.sigma_query,
                "epsilon": cost(kept),
            }
            rows.append(row | (_certified(kept, m, k, capped=bool(horizon)) if certify else {}))
    if as_json:
        for row in rows:
            screen.emit({**row, "target": target})
        return
    what = "noisy max" if mode == "candidates" else "above threshold"
    show_costs(rows, title=f"Gaussian {what} at ε ≤ {at_most(target)} over {family_in_words(family)}")


def _shorter(least: float) -> list[float]:
    """The noise rounded up to a few digits, so that what is read can be typed again and still holds."""
    return [rounded_up(least, digits=digits) for digits in (6, 9)]


def _first_within(target: float, mechanisms: list[_Mechanism], cost: Callable[[_Mechanism], Any]) -> _Mechanism:
    return next((one for one in mechanisms if float(cost(one)) <= target), mechanisms[-1])


def _ends(found: Any) -> dict[str, float]:
    return {"certified_lower": float(found.lower), "certified_upper": float(found.upper)}


def _certified(watcher: Any, m: int, k: int, *, capped: bool) -> dict[str, float]:
    if not capped:
        return _ends(watcher.certify(below=m, above=k))
    ends = [_ends(watcher.certify(below=m - 1, above=1)), _ends(watcher.certify(below=m, above=0))]
    return {name: max(one[name] for one in ends) for name in ends[0]}
