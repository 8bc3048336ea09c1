"""``dpselect calibrate``: the least noise for a given ε."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from cyclopts import Parameter

from dpselect.cli import screen
from dpselect.cli.epsilon import SQUARE_ROOT_OF_3, Asked, cost_of, pure_cost, show_costs
from dpselect.cli.numbers import Number
from dpselect.cli.options import AsJson, Family, needed
from dpselect.errors import refuse_given
from dpselect.report.words import family_in_words
from dpselect.rounding import at_most, no_more_than, rounded_up


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

    sizes, queries, target = asked.sizes(), family.family(), no_more_than(epsilon)
    allowed = None if delta is None else no_more_than(delta)
    if asked.candidates is not None:
        refuse_given("noisy max", threshold=asked.threshold, ratio=ratio)
    else:
        refuse_given("above threshold, whose noise is calibrated for a pure ε", delta=delta)
    proportion = SQUARE_ROOT_OF_3 if ratio is None else float(ratio)
    rows: list[dict[str, Any]] = []
    for size in sizes:
        least: Any
        if asked.candidates is not None:
            promise: dict[str, Any] = {} if allowed is None else {"delta": allowed}
            least = GaussianNoisyMax.calibrated(queries, epsilon=target, **size, **promise)
            trials = [replace(least, sigma=noise) for noise in _shorter(least.sigma)]
        else:
            line = float(needed("threshold", asked.threshold))
            least = GaussianAboveThreshold.calibrated(queries, threshold=line, epsilon=target, ratio=proportion, **size)
            trials = [
                replace(least, sigma_threshold=noise, sigma_query=rounded_up(proportion * noise))
                for noise in _shorter(least.sigma_threshold)
            ]

        def cost(trial: Any, size: dict[str, int] = size) -> float:
            if allowed is None:
                return pure_cost(trial, size)
            return float(trial.approximate_epsilon(delta=allowed, **size))

        found = next((one for one in trials if cost(one) <= target), least)
        rows.append(cost_of(found, size, delta=delta, certify=certify))
    if as_json:
        for row in rows:
            screen.emit({**row, "target": target})
        return
    kind = "above threshold" if asked.candidates is None else "noisy max"
    show_costs(rows, title=f"Gaussian {kind} at ε ≤ {at_most(target)} over {family_in_words(queries)}")


def _shorter(least: float) -> list[float]:
    """The noise rounded up to a few digits, so that what is read can be typed again and still holds."""
    return [rounded_up(least, digits=digits) for digits in (6, 9)]
