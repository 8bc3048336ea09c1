"""Exact samples of the discrete Laplace and the discrete Gaussian law on the integers.

Both samplers turn uniform bits into integers by comparisons with exp and log of rationals. A comparison is
first made in double precision with a margin far wider than any rounding error; what falls inside the margin
is decided in ball arithmetic, with more random bits where the drawn ones do not decide. So the law is the
ideal one, whatever the floating-point unit does in the last places.

The only departure is at the far end: magnitudes of 2^62 and more come back as 2^62, which is post-processing.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from dpselect.checks import refuse
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.precision import working_precision

Integers: TypeAlias = NDArray[np.int64]

#: Where magnitudes are cut, so that sums of a value and its noise fit 64 bits.
LARGEST_MAGNITUDE = 2**62

#: Scales beyond this would leave the margins below too thin to settle most draws at once.
LARGEST_SCALE = 2.0**40

#: Relative doubt granted to ``scale * log(u)``: 32 units in the last place of a chain of four roundings.
_LOG_DOUBT = 2.0**-48

#: Absolute doubt granted to an acceptance probability computed in doubles.
_EXP_DOUBT = 2.0**-32


def discrete_laplace(size: int, *, scale: Fraction, entropy: Entropy = SYSTEM_ENTROPY) -> Integers:
    """Integers with P(k) proportional to exp(−|k|/scale).

    Parameters
    ----------
    size : int
        How many.
    scale : Fraction
        t > 0, at most 2^40.
    entropy : Entropy
        Where the random bits come from.

    Notes
    -----
    floor(−t·log U) ≥ k iff U ≤ e^(−k/t), so this floor is geometric with ratio e^(−1/t). A random sign makes
    it two-sided; "minus zero" is thrown away and drawn again, so that 0 is not counted twice.

    Examples
    --------
    >>> from dpselect.noise.entropy import SeededEntropy
    >>> noise = discrete_laplace(100_000, scale=Fraction(3, 2), entropy=SeededEntropy(7))
    >>> round(float((noise == 0).mean()), 2), round(math.tanh(1 / 3), 2)
    (0.32, 0.32)
    """
    _check_scale("scale", scale)
    return _two_sided(size, scale, entropy)


def _two_sided(size: int, scale: Fraction, entropy: Entropy) -> Integers:
    out = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        wanted = size - filled
        # Enough for one pass nearly always; what is left over carries no information and is dropped.
        asked = int(wanted / (1.0 - float(1 / (2 * scale + 2))) * 1.02) + 16
        magnitude = _geometric(asked, scale, entropy)
        negative = entropy.words(asked, dtype=np.uint8) >= 128
        kept = np.where(negative, -magnitude, magnitude)[~(negative & (magnitude == 0))][:wanted]
        out[filled : filled + kept.size] = kept
        filled += kept.size
    return out


def discrete_gaussian(size: int, *, sigma: Fraction, entropy: Entropy = SYSTEM_ENTROPY) -> Integers:
    """Integers with P(k) proportional to exp(−k²/(2σ²)).

    Parameters
    ----------
    size : int
        How many.
    sigma : Fraction
        σ > 0, at most 2^40; the standard deviation is σ up to a relative e^(−2π²σ²).
    entropy : Entropy
        Where the random bits come from.

    Notes
    -----
    Rejection from the discrete Laplace law of scale t = ⌊σ⌋ + 1 with acceptance probability
    exp(−(|k| − σ²/t)²/(2σ²)) (Canonne, Kamath and Steinke 2020, Algorithm 3).

    Examples
    --------
    >>> from dpselect.noise.entropy import SeededEntropy
    >>> noise = discrete_gaussian(100_000, sigma=Fraction(20), entropy=SeededEntropy(7))
    >>> round(float(noise.std()) / 20, 2)
    1.0
    """
    _check_scale("sigma", sigma)
    proposal_scale = math.floor(sigma) + 1
    centre = sigma**2 / proposal_scale
    out = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        wanted = size - filled
        asked = int(wanted * 1.4) + 16
        proposal = _two_sided(asked, Fraction(proposal_scale), entropy)
        accepted = _accept(np.abs(proposal), centre, sigma, entropy)
        kept = proposal[accepted][:wanted]
        out[filled : filled + kept.size] = kept
        filled += kept.size
    return out


def _check_scale(name: str, value: Fraction) -> None:
    if not isinstance(value, (Fraction, int)) or not 0 < value <= LARGEST_SCALE:
        raise refuse(name, value, "a Fraction, positive and at most 2**40")


def _geometric(size: int, scale: Fraction, entropy: Entropy) -> Integers:
    """floor(−scale·log U), U uniform on (0, 1) and refined where 64 bits do not decide the floor."""
    words = entropy.words(size, dtype=np.uint64)
    # U lies in [w, w + 1)/2^64. Its middle, in doubles, is within 2^-52 relative once w ≥ 2^52, and so is the
    # width of the cell; smaller words (one in 4,096) go to ball arithmetic together with the doubtful ones.
    uniform = (words.astype(np.float64) + 0.5) * 2.0**-64
    level = float(scale) * -np.log(uniform)
    # Near U = 1 the logarithm is small and its own error is relative to 1 − U, not to log U: grant both.
    doubt = (level + float(scale)) * _LOG_DOUBT
    magnitude = np.floor(level)
    unsure = (np.floor(level - doubt) != np.floor(level + doubt)) | (words < np.uint64(2**52))
    result = np.minimum(magnitude, float(LARGEST_MAGNITUDE)).astype(np.int64)
    for place in np.flatnonzero(unsure):
        result[place] = min(_geometric_exactly(int(words[place]), scale, entropy), LARGEST_MAGNITUDE)
    return result


def _geometric_exactly(word: int, scale: Fraction, entropy: Entropy) -> int:
    """The floor for one U that starts with the 64 bits of ``word``."""
    numerator, bits = word, 64
    with working_precision():
        while True:
            ctx.prec = 2 * bits + 64
            if numerator:
                ends = [
                    -arb(fmpq(scale.numerator, scale.denominator)) * (arb(fmpq(end, 1)).log() - bits * arb(2).log())
                    for end in (numerator + 1, numerator)
                ]
                lowest, highest = ends[0].floor().unique_fmpz(), ends[1].floor().unique_fmpz()
                if lowest is not None and lowest == highest:
                    return int(lowest)
            numerator, bits = (numerator << 64) | entropy.bits(64), bits + 64


def _accept(magnitude: Integers, centre: Fraction, sigma: Fraction, entropy: Entropy) -> NDArray[np.bool_]:
    """Independent events of probability exp(−(magnitude − centre)²/(2·sigma²))."""
    words = entropy.words(magnitude.size, dtype=np.uint64)
    # The distance is good to 2^-50 of (magnitude + centre)/sigma; where that is 60 or more the probability is
    # below e^-1,600, and elsewhere the exponent is off by less than 60 · 120 · 2^-50 < 2^-36.
    distance = (magnitude.astype(np.float64) - float(centre)) / float(sigma)
    chance = np.exp(-0.5 * distance * distance)
    uniform = words.astype(np.float64) * 2.0**-64
    accepted = uniform < chance
    for place in np.flatnonzero(np.abs(uniform - chance) <= _EXP_DOUBT):
        exponent = (int(magnitude[place]) - centre) ** 2 / (2 * sigma**2)
        accepted[place] = _accept_exactly(int(words[place]), exponent, entropy)
    return accepted


def _accept_exactly(word: int, exponent: Fraction, entropy: Entropy) -> bool:
    """Whether U < e^(−exponent), for one U that starts with the 64 bits of ``word``."""
    numerator, bits = word, 64
    with working_precision():
        while True:
            ctx.prec = 2 * bits + 64
            chance = (-arb(fmpq(exponent.numerator, exponent.denominator))).exp()
            if arb(fmpq(numerator + 1, 1 << bits)) <= chance:
                return True
            if arb(fmpq(numerator, 1 << bits)) >= chance:
                return False
            numerator, bits = (numerator << 64) | entropy.bits(64), bits + 64
