"""``dpselect calibrate``: the least noise for a given ε."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter

from dpselect.cli import screen
from dpselect.cli.epsilon import SQUARE_ROOT_OF_3, Asked, show_costs
from dpselect.cli.numbers import Number
from dpselect.cli.options import AsJson, Family, needed
from dpselect.errors import refuse_given
from dpselect.report.rounding import at_most, no_more_than, rounded_up
from dpselect.report.words import family_in_words

_Mechanism = TypeVar("_Mechanism")


def calibrate(
    *,
    epsilon: Annotated[Number, Parameter(help="The most the release may cost, pure.", metavar="ε")],
    asked: Asked = Asked(),  # noqa: B008 - frozen
    family: Family = Family(),  # noqa: B008
    delta: Annotated[
        Number | None, Parameter(help="Noisy max: ε may be exceeded with this chance, for less noise.", metavar="δ")
    ] = None,
    ratio: Annotated[Number | None, Parameter(help="Above threshold: σ_Z/σ_X; √3 if left out.")] = None,
    certify: Annotated[bool, Parameter(help="Also enclose the pure ε between two proven numbers.")] = False,
    as_json: AsJson = False,
) -> None:
    """The least noise with which a release costs at most ε.

    Noisy max, and above threshold:

      $ dpselect calibrate --candidates 365 --epsilon 0.1 --sensitivity 1/6946

      $ dpselect calibrate --horizon 365 --threshold 0.575 --epsilon 0.5
        --sensitivity 1/6946 --monotone

    In Python: GaussianNoisyMax.calibrated, GaussianAboveThreshold.calibrated.
    """
    from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
    from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax

    mode, queries = asked.mode, family.family()
    target = no_more_than(epsilon)
    rows: list[dict[str, Any]] = []
    if mode == "candidates":
        refuse_given("noisy max", threshold=asked.threshold, ratio=ratio)
        allowed = 0.0 if delta is None else no_more_than(delta)
        for d in asked.candidates or ():

            def price(trial: GaussianNoisyMax, d: int = d) -> float:
                if delta is None:
                    return float(trial.epsilon(candidates=d))
                return float(trial.approximate_epsilon(delta=allowed, candidates=d))

            promise = {} if delta is None else {"delta": allowed}
            least = GaussianNoisyMax.calibrated(queries, candidates=d, epsilon=target, **promise)
            trials = (GaussianNoisyMax(queries, sigma) for sigma in _shorter(least.sigma))
            picker = _first_within(target, [*trials, least], price)
            row = {"candidates": d, "sigma": picker.sigma, "epsilon": float(picker.epsilon(candidates=d))}
            if delta is not None:
                row |= {"epsilon_at_delta": price(picker), "delta": allowed}
            rows.append(row | (_ends(picker.certify(candidates=d)) if certify else {}))
    else:
        refuse_given("above threshold, whose noise is calibrated for a pure ε", delta=delta)
        proportion = SQUARE_ROOT_OF_3 if ratio is None else float(ratio)
        line = float(needed("threshold", asked.threshold))

        for m in asked.horizon or asked.below or (0,):
            k = asked.above or 0
            what = {"horizon": m} if asked.horizon else {"below": m, "above": k}
            least_noise = GaussianAboveThreshold.calibrated(
                queries, threshold=line, epsilon=target, ratio=proportion, **what
            )

            def cost(trial: GaussianAboveThreshold, m: int = m, k: int = k) -> float:
                return float(trial.epsilon(horizon=m) if asked.horizon else trial.loss(below=m, above=k))

            attempts = (
                GaussianAboveThreshold(
                    queries, threshold=line, sigma_threshold=sigma, sigma_query=rounded_up(proportion * sigma)
                )
                for sigma in _shorter(least_noise.sigma_threshold)
            )
            kept = _first_within(target, [*attempts, least_noise], cost)
            row = {
                **what,
                "sigma_threshold": kept.sigma_threshold,
                "sigma_query": kept.sigma_query,
                "epsilon": cost(kept),
            }
            rows.append(row | (_certified(kept, m, k, capped=bool(asked.horizon)) if certify else {}))
    if as_json:
        for row in rows:
            screen.emit({**row, "target": target})
        return
    kind = "noisy max" if mode == "candidates" else "above threshold"
    show_costs(rows, title=f"Gaussian {kind} at ε ≤ {at_most(target)} over {family_in_words(queries)}")


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
