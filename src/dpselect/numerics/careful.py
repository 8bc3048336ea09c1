"""The careful way to integrate: each integral in its own window, with nodes that crowd where cliffs are.

Used for the cells the quick rule of :mod:`dpselect.numerics.integral` cannot settle: sharp cliffs
(σ_X ≫ σ_Z), gains that live far from the integrand's own peak, shifts as large as the range.

The loss is log(J(s)/J(0)) = log1p(Σ_g K_g/J(0)) with

    K_g = ∫ f_g · (1 - (Φ_g(0)/Φ_g(s))^count_g),   f_g = f with the first g factors shifted,

a telescoping sum in which every term is positive and every integrand log-concave (a power of Φ is the
distribution function of a log-concave density, and its increment is that density convolved with an interval).
Nothing cancels, so losses of 1e-40 keep their digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dpselect.checks import FloatArray
from dpselect.numerics.factors import Factors
from dpselect.numerics.normal import log_cdf_and_hazard, log_cdf_bend, log_cdf_step, log_tail_step

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
        if self.value.ndim == 0 and 0 < self.error < np.inf:
            return np.asarray(math.nextafter(float(self.value) + float(self.error), math.inf))
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


@dataclass(frozen=True)
class _Area:
    """log ∫ exp(curve), the relative error of the integral, and the curve's mean offset."""

    log: FloatArray
    error: FloatArray
    mean: FloatArray


def _area_under(curve: Curve, slope: Curve, cells: int) -> _Area:
    """Integrate the exponential of a concave curve, given its derivative."""
    peak = peak_of(slope, cells)
    top = curve(peak[:, None])[:, 0]
    left = _reach(curve, peak, top, -1.0)
    right = _reach(curve, peak, top, 1.0)
    middle = peak + 0.5 * (right - left)
    half = 0.5 * (right + left)
    value, mean = np.zeros(cells), np.zeros(cells)
    error = np.full(cells, np.inf)
    for points in (129, 257, 513, 1025, 2049, 4097):
        nodes, weights = _double_exponential(points)
        heights = np.exp(curve(middle[:, None] + half[:, None] * nodes) - top[:, None])
        fine = heights @ weights
        coarse = 2.0 * (heights[:, ::2] @ weights[::2])
        change = np.abs(fine - coarse) / fine
        better = change < error
        value = np.where(better, fine, value)
        mean = np.where(better, middle + half * (heights @ (nodes * weights)) / fine, mean)
        error = np.where(better, change, error)
        if np.all(error < 2e-12):
            break
    # The last change bounds the error with much to spare: each doubling nearly squares it. The tails hold exp(-DROP).
    error = error + np.exp(-DROP + 3.0)
    return _Area(top + np.log(half * value), error, mean)


class Hill:
    """log f around a centre, one row per cell; ``base`` is slope·centre + offset of each factor."""

    def __init__(self, factors: Factors, centre: FloatArray, base: FloatArray) -> None:
        self.factors = factors
        self.centre = centre
        self.base = base
        pulls = factors.counts * factors.slopes * log_cdf_and_hazard(base)[1]
        self.tilt = pulls.sum(axis=1) - centre
        # The tilt is a difference of large numbers: this much of it is rounding.
        self.tilt_error = 4.0 * _EPS * (np.abs(pulls).sum(axis=1) + np.abs(centre))
        # Where h + y cancels the curvature carries rounding of its own, worst at the start of the deep tail.
        self.bend_error = 4.0 * _EPS * (16.0 + np.square(np.clip(base, -25.0, 0.0)).max(axis=1))

    def argument(self, j: int, offset: FloatArray) -> FloatArray:
        """What Φ is taken of in factor j."""
        return np.asarray(self.base[:, j, None] + self.factors.slopes[:, j, None] * offset)

    def height(self, offset: FloatArray) -> FloatArray:
        """log f relative to the centre: the tilt there, and what bends away from it."""
        total = offset * (self.tilt[:, None] - 0.5 * offset)
        for j in range(self.factors.width):
            bend = log_cdf_bend(self.base[:, j, None], self.factors.slopes[:, j, None] * offset)
            total += self.factors.counts[:, j, None] * bend
        return np.asarray(total)

    def slope(self, offset: FloatArray) -> FloatArray:
        """d log f / dx."""
        total = -(self.centre[:, None] + offset)
        for j in range(self.factors.width):
            _, hazard = log_cdf_and_hazard(self.argument(j, offset))
            total = total + self.factors.counts[:, j, None] * self.factors.slopes[:, j, None] * hazard
        return total

    def moved(self, step: FloatArray, shifts: FloatArray) -> tuple[Hill, FloatArray, FloatArray]:
        """The hill of the shifted factors around ``centre + step``; its log height there relative to this centre.

        The third is a bound on the rounding error of that height.
        """
        move = self.factors.slopes * step[:, None] + shifts
        rises = self.factors.counts * log_cdf_step(self.base, move)
        fall = -step * (self.centre + 0.5 * step)
        error = 4.0 * _EPS * (np.abs(rises).sum(axis=1) + np.abs(fall))
        return Hill(self.factors, self.centre + step, self.base + move), rises.sum(axis=1) + fall, error

    def area(self) -> _Area:
        """∫ f relative to f at the centre."""
        return _area_under(self.height, self.slope, len(self.factors))


def hill_of(factors: Factors) -> Hill:
    """The hill around its peak; counts may be negative where the integrand stays log-concave."""
    flat = np.zeros(len(factors))
    centre = peak_of(Hill(factors, flat, factors.offsets).slope, len(factors))
    return Hill(factors, centre, factors.slopes * centre[:, None] + factors.offsets)


def _gain(hill: Hill, shifts: FloatArray, g: int) -> tuple[FloatArray, FloatArray]:
    """log K_g relative to f at the hill's centre, and a bound on its absolute error."""
    counts, slopes, cells = hill.factors.counts, hill.factors.slopes, len(hill.factors)
    partial = np.where(np.arange(shifts.shape[1]) <= g, shifts, 0.0)
    shifted = Hill(hill.factors, hill.centre, hill.base + partial)
    step = peak_of(shifted.slope, cells)
    upper, height, height_error = hill.moved(np.where(np.abs(step) < 1e-3, 0.0, step), partial)
    shift = shifts[:, g, None]

    def curve(offset: FloatArray) -> FloatArray:
        y = upper.argument(g, offset) - shift
        gain = np.log(-np.expm1(-counts[:, g, None] * log_cdf_step(y, shift)))
        # Far up the tail the step itself underflows, its logarithm does not.
        far = y > 30.0
        if far.any():
            gain = np.where(far, np.log(counts[:, g, None]) + log_tail_step(np.maximum(y, 30.0), shift), gain)
        return np.asarray(upper.height(offset) + gain)

    def slope(offset: FloatArray) -> FloatArray:
        y = upper.argument(g, offset) - shift
        step = log_cdf_step(y, shift)
        middle = y + 0.5 * shift
        tiny = (shift * (1.0 + np.abs(y)) < 1e-4) | (step <= 0)
        difference = log_cdf_and_hazard(y + shift)[1] - log_cdf_and_hazard(y)[1]
        bend = np.where(tiny, -(middle + log_cdf_and_hazard(middle)[1]), difference / step)
        rises = counts[:, g, None] * step
        share = np.where(rises < 1e-8, 1.0, rises / np.expm1(np.minimum(rises, 700.0)))
        return np.asarray(upper.slope(offset) + slopes[:, g, None] * bend * share)

    area = _area_under(curve, slope, cells)
    # In the upper tail a rounding error of y moves 1 - Φ(y) by y² times as much, relatively.
    tail = np.clip(upper.argument(g, area.mean[:, None])[:, 0], 0.0, 40.0)
    error = area.error + height_error + upper.tilt_error * np.abs(area.mean) + upper.bend_error
    error += 8.0 * _EPS * tail * tail
    return height + area.log, error


@np.errstate(all="ignore")
def careful_log_integral(factors: Factors) -> LogEstimate:
    """log E_x[∏ Φ(slope_j·x + offset_j)^count_j] with its absolute error."""
    hill = hill_of(factors)
    area = hill.area()
    log_cdf, _ = log_cdf_and_hazard(hill.base)
    parts = [-0.5 * np.square(hill.centre), area.log - 0.5 * np.log(2 * np.pi)]
    parts += [factors.counts[:, j] * log_cdf[:, j] for j in range(factors.width)]
    size = np.sum(np.abs(parts), axis=0)
    return LogEstimate(
        np.sum(parts, axis=0), area.error + hill.tilt_error * np.abs(area.mean) + 8.0 * _EPS * (16.0 + size)
    )


@np.errstate(all="ignore")
def careful_log_ratio(factors: Factors, shifts: FloatArray) -> LogEstimate:
    """log J(shifts) - log J(0), shifts ≥ 0, with its absolute error (proportional to the value)."""
    hill = hill_of(factors)
    whole = hill.area()
    log_odds = np.full(len(factors), -np.inf)  # log(Σ K_g / J(0))
    odds_error = np.zeros(len(factors))
    for g in range(factors.width):
        live = (shifts[:, g] > 0) & (factors.counts[:, g] > 0)
        if not live.any():
            continue
        value, error = _gain(Hill(factors.take(live), hill.centre[live], hill.base[live]), shifts[live], g)
        log_odds[live] = np.logaddexp(log_odds[live], value - whole.log[live])
        odds_error[live] = np.maximum(odds_error[live], error)
    odds_error += whole.error + hill.tilt_error * np.abs(whole.mean) + hill.bend_error + 128.0 * _EPS
    value = np.where(log_odds < 0, np.log1p(np.exp(np.minimum(log_odds, 0.0))), np.logaddexp(0.0, log_odds))
    # d log1p(exp(r)) = sigmoid(r) dr ≤ min(1, exp(r)) dr: an error of r is a relative error of a small loss.
    error = np.exp(np.minimum(log_odds, 0.0)) * odds_error + 4.0 * _EPS * value
    # Below the smallest doubles a positive loss shows as 0; the error bound keeps it covered.
    moved = ((shifts > 0) & (factors.counts > 0)).any(axis=1)
    return LogEstimate(value, np.where(moved, error + 5e-308, 0.0))
