"""``dpselect epsilon``: what a release costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from cyclopts import Group, Parameter

from dpselect.cli import screen
from dpselect.cli.numbers import Count, Counts, Number
from dpselect.cli.options import AsJson, Family, needed
from dpselect.errors import InvalidParameter, refuse_given
from dpselect.report.words import family_in_words
from dpselect.rounding import at_least, at_most, no_more_than

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

    def sizes(self) -> list[dict[str, int]]:
        """How large each release is, as a mechanism takes it; refuses none and several of the three ways."""
        ways = {
            "candidates": [{"candidates": number} for number in self.candidates or ()],
            "horizon": [{"horizon": number} for number in self.horizon or ()],
            "below/above": [{"below": number, "above": self.above or 0} for number in self.below or (0,)],
        }
        if self.below is None and self.above is None:
            del ways["below/above"]
        given = [name for name, sizes in ways.items() if sizes]
        if len(given) != 1:
            found = " and ".join(f"--{name}" for name in given) or "none"
            raise InvalidParameter(
                f"give one of --candidates (noisy max), --horizon or --below/--above (above threshold); got {found}"
            )
        return ways[given[0]]


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
    asked: Asked = Asked(),
    family: Family = Family(),  # noqa: B008
    noise: Noise = Noise(),
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
    from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
    from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax

    sizes, queries = asked.sizes(), family.family()
    mechanism: GaussianNoisyMax | GaussianAboveThreshold
    if asked.candidates is not None:
        unused = {"threshold": asked.threshold, "sigma_threshold": noise.sigma_threshold}
        refuse_given("noisy max", **unused, sigma_query=noise.sigma_query)
        mechanism = GaussianNoisyMax(queries, sigma=float(needed("sigma", noise.sigma)))
    else:
        refuse_given("above threshold", sigma=noise.sigma)
        of_line = float(needed("sigma_threshold", noise.sigma_threshold))
        mechanism = GaussianAboveThreshold(
            queries,
            threshold=float(needed("threshold", asked.threshold)),
            sigma_threshold=of_line,
            sigma_query=SQUARE_ROOT_OF_3 * of_line if noise.sigma_query is None else float(noise.sigma_query),
        )
        if asked.horizon is None and delta is not None:
            raise InvalidParameter("--delta does not go with --below/--above: a known transcript has a pure cost")
    rows = [cost_of(mechanism, size, delta=delta, certify=certify) for size in sizes]
    if as_json:
        for row in rows:
            screen.emit(row)
        return
    what = "Gaussian noisy max" if asked.candidates is not None else "Gaussian above threshold"
    show_costs(rows, title=f"{what} over {family_in_words(queries)}")


def pure_cost(mechanism: Any, size: dict[str, int]) -> float:
    """The pure ε of a release of this size: known beforehand, or of a transcript."""
    return float(mechanism.loss(**size) if "below" in size else mechanism.epsilon(**size))


def cost_of(mechanism: Any, size: dict[str, int], *, delta: Fraction | None, certify: bool) -> dict[str, Any]:
    """What a release of this size costs, beside its noise."""
    noise = dict(zip(mechanism.noise_names, mechanism.scales, strict=True))
    row = {**size, **noise, "epsilon": pure_cost(mechanism, size)}
    if delta is not None:
        allowed = no_more_than(delta)
        row |= {"delta": allowed, "epsilon_at_delta": float(mechanism.approximate_epsilon(delta=allowed, **size))}
    if certify:
        # A run with a horizon ends with a ⊤ or without one: whichever costs more.
        most = size.get("horizon")
        ways = [size] if most is None else [{"below": most - 1, "above": 1}, {"below": most, "above": 0}]
        found = [mechanism.certify(**way) for way in ways]
        row["certified_lower"] = max(float(one.lower) for one in found)
        row["certified_upper"] = max(float(one.upper) for one in found)
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
