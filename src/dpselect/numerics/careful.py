"""The careful way to integrate: each integral in its own window, with nodes that crowd where cliffs are.

Used for the cells the quick rule of :mod:`dpselect.numerics.integral` cannot settle: sharp cliffs
(σ_X ≫ σ_Z), gains that live far from the integrand's own peak, shifts as large as the range.

The loss is log(J(s)/J(0)) = log1p(Σ_g K_g/J(0)) with

    K_g = ∫ f · ∏_{j<g} (Φ_j(s)/Φ_j(0))^count · [(Φ_g(s)/Φ_g(0))^count - 1],

a telescoping sum in which every term is positive and every integrand log-concave (a power of Φ is the
distribution function of a log-concave density, and its increment is that density convolved with an interval).
Nothing cancels, so losses of 1e-40 keep their digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dpselect.checks import FloatArray
from dpselect.numerics.factors import Factors, relative_log_integrand
from dpselect.numerics.normal import log_cdf_and_hazard, log_cdf_step

#: A window ends where the integrand has fallen by exp(-DROP) from its peak: 4e-20 of it.
DROP = 44.0
_EPS = float(np.finfo(np.float64).eps)

#: Maps offsets from the centre, shape (cells, points), to values of the same shape.
Curve: TypeAlias = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class LogEstimate:
    """A logarithm with a bound on its absolute error."""

    value: FloatArray
    error: FloatArray

    @property
    def upper(self) -> FloatArray:
        """Never below the truth; infinite where the value could not be had."""
        top = np.nextafter(self.value + self.error, np.inf)
        return np.where(np.isnan(top), np.inf, np.where(self.error == 0, self.value, top))


def _bisect(slope: Curve, low: FloatArray, high: FloatArray, *, steps: int = 70) -> FloatArray:
    """The zero of a falling function between ``low`` and ``high``."""
    for _ in range(steps):
        middle = 0.5 * (low + high)
        rising = slope(middle[:, None])[:, 0] > 0
        low = np.where(rising, middle, low)
        high = np.where(rising, high, middle)
    return np.asarray(0.5 * (low + high))


def peak_of(slope: Curve, cells: int) -> FloatArray:
    """Where a concave curve with the given slope peaks, as an offset from the centre."""
    low, high = np.full(cells, -1.0), np.full(cells, 1.0)
    for _ in range(60):
        more = slope(high[:, None])[:, 0] > 0
        less = slope(low[:, None])[:, 0] < 0
        if not (more.any() or less.any()):
            break
        low, high = np.where(more, high, low), np.where(more, high * 3.0, high)
        low, high = np.where(less, low * 3.0, low), np.where(less, np.minimum(high, low), high)
    return _bisect(slope, low, high)


def _reach(curve: Curve, peak: FloatArray, top: FloatArray, side: float) -> FloatArray:
    """How far from the peak, on one side, the curve has dropped by ``DROP``."""
    low = np.full(peak.shape, -60.0)
    high = np.full(peak.shape, 40.0)  # logarithms of the distance
    for _ in range(45):
        middle = 0.5 * (low + high)
        drop = top - curve((peak + side * np.exp(middle))[:, None])[:, 0]
        beyond = ~(drop < DROP)
        high = np.where(beyond, middle, high)
        low = np.where(beyond, low, middle)
    return np.asarray(np.exp(high))


def _double_exponential(points: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on [-1, 1] that crowd double-exponentially at both ends."""
    steps = np.linspace(-3.0, 3.0, points)
    inner = 0.5 * np.pi * np.sinh(steps)
    nodes = np.tanh(inner)
    weights = 0.5 * np.pi * np.cosh(steps) / np.cosh(inner) ** 2 * (steps[1] - steps[0])
    return nodes, weights


def log_integral_of(curve: Curve, slope: Curve, cells: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """log ∫ exp(curve) for a concave curve: value, relative error of the integral, and the peak's offset."""
    peak = peak_of(slope, cells)
    top = curve(peak[:, None])[:, 0]
    left = _reach(curve, peak, top, -1.0)
    right = _reach(curve, peak, top, 1.0)
    middle = peak + 0.5 * (right - left)
    half = 0.5 * (right + left)
    value = np.zeros(cells)
    error = np.full(cells, np.inf)
    for points in (129, 257, 513, 1025, 2049, 4097):
        nodes, weights = _double_exponential(points)
        heights = np.exp(curve(middle[:, None] + half[:, None] * nodes) - top[:, None])
        fine = heights @ weights
        coarse = 2.0 * (heights[:, ::2] @ weights[::2])
        change = np.abs(fine - coarse) / fine
        better = change < error
        value = np.where(better, fine, value)
        error = np.where(better, change, error)
        if np.all(error < 1e-8):
            break
    # Halving the spacing at least squares the error of the rule; 3/2 leaves room. The tails hold exp(-DROP).
    error = np.minimum(error, 10.0 * error**1.5) + np.exp(-DROP + 3.0)
    return top + np.log(half * value), error, peak


class Hill:
    """J(0) and its gains around a centre, one row per cell."""

    def __init__(self, factors: Factors, centre: FloatArray) -> None:
        self.factors = factors
        self.centre = centre
        self.base = factors.slopes * centre[:, None] + factors.offsets

    def height(self, offset: FloatArray) -> FloatArray:
        """log f relative to the centre."""
        return relative_log_integrand(self.factors, self.centre, self.base, offset)

    def slope(self, offset: FloatArray) -> FloatArray:
        """d log f / dx."""
        total = -(self.centre[:, None] + offset)
        for j in range(self.factors.width):
            _, hazard = log_cdf_and_hazard(self._argument(j, offset))
            total = total + self.factors.counts[:, j, None] * self.factors.slopes[:, j, None] * hazard
        return total

    def _argument(self, j: int, offset: FloatArray) -> FloatArray:
        return self.base[:, j, None] + self.factors.slopes[:, j, None] * offset

    def gain(self, shifts: FloatArray, g: int) -> Curve:
        """The logarithm of the g-th term of the telescoping sum, relative to f at the centre."""
        counts = self.factors.counts

        def curve(offset: FloatArray) -> FloatArray:
            total = self.height(offset)
            for j in range(g):
                total = total + counts[:, j, None] * log_cdf_step(self._argument(j, offset), shifts[:, j, None])
            rise = counts[:, g, None] * log_cdf_step(self._argument(g, offset), shifts[:, g, None])
            with np.errstate(divide="ignore"):
                logs = np.where(rise > 36.0, rise, np.log(np.expm1(np.minimum(rise, 36.0))))
            return np.asarray(total + logs)

        return curve

    def gain_slope(self, shifts: FloatArray, g: int) -> Curve:
        """The derivative of :meth:`gain`."""
        counts, slopes = self.factors.counts, self.factors.slopes

        def curve(offset: FloatArray) -> FloatArray:
            total = self.slope(offset)
            for j in range(g + 1):
                y, shift = self._argument(j, offset), shifts[:, j, None]
                _, before = log_cdf_and_hazard(y)
                _, after = log_cdf_and_hazard(y + shift)
                if j < g:
                    total = total + counts[:, j, None] * slopes[:, j, None] * (after - before)
                    continue
                step = log_cdf_step(y, shift)
                rise = counts[:, g, None] * step
                middle = y + 0.5 * shift
                _, at_middle = log_cdf_and_hazard(middle)
                tiny = shift * (1.0 + np.abs(y)) < 1e-4
                with np.errstate(divide="ignore", invalid="ignore"):
                    bend = np.where(tiny | (step <= 0), -(middle + at_middle), (after - before) / step)
                    lift = np.where(rise < 1e-8, 1.0, rise / -np.expm1(-rise))
                total = total + slopes[:, g, None] * bend * lift
            return np.asarray(total)

        return curve

    def rounding(self, offset: FloatArray) -> FloatArray:
        """A bound on the rounding error of :meth:`height` at the given offsets, one per cell."""
        size = np.abs(offset * (self.centre + 0.5 * offset))
        for j in range(self.factors.width):
            step = log_cdf_step(self.base[:, j], self.factors.slopes[:, j] * offset)
            size = size + np.abs(self.factors.counts[:, j] * step)
            # A rounding error of the offset moves Φ(y) by y² times as much, relatively, in the upper tail.
            size = size + np.square(np.maximum(self._argument(j, offset[:, None])[:, 0], 0.0).clip(max=40.0))
        return 4.0 * _EPS * size


def centre_of(factors: Factors) -> FloatArray:
    """The peak of each cell's integrand; counts may be negative where the integrand stays log-concave."""
    return peak_of(Hill(factors, np.zeros(len(factors))).slope, len(factors))


def careful_log_integral(factors: Factors) -> LogEstimate:
    """log E_x[∏ Φ(slope_j·x + offset_j)^count_j] with its absolute error."""
    hill = Hill(factors, centre_of(factors))
    value, error, _ = log_integral_of(hill.height, hill.slope, len(factors))
    log_cdf, _ = log_cdf_and_hazard(hill.base)
    parts = [-0.5 * np.square(hill.centre), value - 0.5 * np.log(2 * np.pi)]
    parts += [factors.counts[:, j] * log_cdf[:, j] for j in range(factors.width)]
    size = np.sum(np.abs(parts), axis=0)
    return LogEstimate(np.sum(parts, axis=0), error + 8.0 * _EPS * (8.0 + size))


def careful_log_ratio(factors: Factors, shifts: FloatArray) -> LogEstimate:
    """log J(shifts) - log J(0), shifts ≥ 0, with its absolute error (proportional to the value)."""
    hill = Hill(factors, centre_of(factors))
    whole, whole_error, _ = log_integral_of(hill.height, hill.slope, len(factors))
    log_odds = np.full(len(factors), -np.inf)  # log(Σ K_g / J(0))
    odds_error = np.zeros(len(factors))
    for g in range(factors.width):
        live = (shifts[:, g] > 0) & (factors.counts[:, g] > 0)
        if not live.any():
            continue
        part = Hill(factors.take(live), hill.centre[live])
        moved = shifts[live]
        value, error, peak = log_integral_of(part.gain(moved, g), part.gain_slope(moved, g), len(part.factors))
        error = error + whole_error[live] + part.rounding(peak) + 64.0 * _EPS
        log_odds[live] = np.logaddexp(log_odds[live], value - whole[live])
        odds_error[live] = np.maximum(odds_error[live], error)
    value = np.logaddexp(0.0, log_odds)
    small = log_odds < -1.0
    value = np.where(small, np.log1p(np.exp(np.where(small, log_odds, 0.0))), value)
    value = np.where(log_odds == -np.inf, 0.0, value)
    # d log1p(exp(r)) = sigmoid(r) dr ≤ min(1, exp(r)) dr: an error of r is a relative error of a small loss.
    scale = np.minimum(1.0, np.exp(np.minimum(log_odds, 0.0)))
    error = scale * odds_error + 4.0 * _EPS * value
    # Below the smallest doubles a positive loss shows as 0; the error bound keeps it covered.
    error = np.where((shifts > 0).any(axis=1) & (factors.counts > 0).any(axis=1), error + 5e-308, 0.0)
    return LogEstimate(value, error)
