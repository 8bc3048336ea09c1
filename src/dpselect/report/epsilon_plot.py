"""A plot of what naming the largest of d costs, against d."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpselect.errors import SourceError
from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.profiles import selection_epsilon

# Okabe and Ito's colours, told apart by every kind of eye.
_COLOURS = ("#0072b2", "#009e73", "#d55e00")


def save_epsilon_plot(
    path: Path, *, family: QueryFamily, delta: float = 1e-5, sigma: float | None = None, largest: int = 10_000
) -> Path:
    """Draws pure ε, ε at δ, and the ε of releasing all values instead; SVG or PNG by the file's ending.

    Parameters
    ----------
    path : Path
        Where to write.
    family : QueryFamily
        Range and sensitivity.
    delta : float
        δ of the two approximate curves.
    sigma : float, optional
        The noise; by default the one at which the largest of 365 costs ε = 0.5.
    largest : int
        Where the axis ends.
    """
    try:
        from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: F401
        from matplotlib.figure import Figure
    except ImportError:
        raise SourceError("plots need matplotlib; install dpselect[plots]") from None
    noise = GaussianNoisyMax.calibrated(family, candidates=365, epsilon=0.5).sigma if sigma is None else sigma
    picker = GaussianNoisyMax(family, noise)
    d = np.unique(np.round(np.geomspace(2, largest, 60)))
    figure = Figure(figsize=(7.2, 3.8), layout="constrained")
    axes = figure.add_subplot()
    shift = family.sensitivity / noise
    curves = (
        (picker.epsilon(candidates=d), "noisy max, pure (δ = 0)", "-"),
        (picker.approximate_epsilon(delta=delta, candidates=d), f"noisy max, δ = {delta:g}", "--"),
        (selection_epsilon(delta, shift=shift * np.sqrt(d)), f"releasing all d values, δ = {delta:g}", ":"),
    )
    for (curve, label, dashes), colour in zip(curves, _COLOURS, strict=True):
        axes.plot(d, curve, dashes, color=colour, label=label, linewidth=2)
    axes.set(xscale="log", yscale="log", xlabel="candidates d", ylabel="ε (upper bound)")
    axes.set_title(f"Cost of one answer at σ = {noise:.3g}, Δ = {family.sensitivity:.3g}", loc="left", fontsize=11)
    axes.grid(which="major", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # No date inside, so that the same plot is the same file.
        metadata = {"Date": None} if target.suffix == ".svg" else None
        figure.savefig(target, metadata=metadata)
    except OSError as failure:
        raise SourceError(
            f"cannot write the plot to {str(path)!r} ({failure.strerror}); choose another place"
        ) from None
    return target
