"""The law of a whole set from its definition, for a handful of values: every set, in doubles, and in balls."""

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, ctx, fmpq

from dpselect.precision import working_precision


@lru_cache
def sets(number):
    """All sets of so many values, as rows of 0 and 1."""
    return np.array(list(itertools.product((0, 1), repeat=number)))


@lru_cache
def prior_of(prior, number):
    """The prior of every set, exactly: one row of fractions for each chain."""
    return tuple(
        tuple(Fraction(chain.weight) * _chain(chain, chosen) for chosen in sets(number).tolist())
        for chain in prior.chains
    )


def _chain(chain, chosen):
    correlation, share = Fraction(chain.correlation), Fraction(chain.share)
    alone = (1 - share, share)
    found = alone[chosen[0]]
    for before, label in itertools.pairwise(chosen):
        found *= alone[label] + correlation * ((before == label) - alone[label])
    return found


def lengths(over):
    """How far each set is from being right, for rows of distances above the line."""
    over = np.asarray(over)[..., None, :]
    chosen = sets(over.shape[-1]).astype(bool)
    return np.where(chosen == (over >= 0), 0, np.abs(over)).max(axis=-1)


def law(over, *, scale, prior):
    """The chance of every set given the line."""
    whole = np.array([float(sum(column)) for column in zip(*prior_of(prior, np.shape(over)[-1]), strict=True)])
    weights = whole * np.exp(-lengths(over) / scale)
    return weights / weights.sum(axis=-1, keepdims=True)


def noised(values, *, line_scale, scale, prior, reach=40):
    """The chance of every set with a line at 0 that has discrete Laplace noise, in whole steps."""
    if not line_scale:
        return law(values, scale=scale, prior=prior)
    farthest = math.ceil(reach * line_scale)
    shifts = np.arange(-farthest, farthest + 1)
    chances = np.exp(-np.abs(shifts) / line_scale)
    return chances @ law(np.asarray(values) - shifts[:, None], scale=scale, prior=prior) / chances.sum()


def loss(first, second, **setting):
    """The largest log ratio of the two laws."""
    return float(np.abs(np.log(noised(first, **setting) / noised(second, **setting))).max())


def loss_in_balls(first, second, *, line_scale, scale, prior, reach=40):
    """The same for certain: a ball that holds the largest log ratio, what the noise does beyond its reach included."""
    with working_precision():
        ctx.prec = 160
        one, other = (_balls(values, line_scale, scale, prior, reach) for values in (first, second))
        ratios = [(p / q).log() for p, q in zip(one, other, strict=True)]
        found = arb(0)
        for ratio in ratios:
            found = found.max(abs(ratio))
        return found


def _balls(values, line_scale, scale, prior, reach):
    whole = [_ball(sum(column)) for column in zip(*prior_of(prior, len(values)), strict=True)]
    step, farthest = (-1 / _ball(scale)).exp(), math.ceil(reach * line_scale)
    ratio = (-1 / _ball(line_scale)).exp() if line_scale else arb(0)
    powers, found = {}, [arb(0)] * len(whole)
    shifts = np.arange(-farthest, farthest + 1)
    for shift, row in zip(shifts.tolist(), lengths(np.asarray(values) - shifts[:, None]).tolist(), strict=True):
        weights = [part * powers.setdefault(far, step**far) for part, far in zip(whole, row, strict=True)]
        chance = ratio ** abs(shift) * (1 - ratio) / (1 + ratio) / sum(weights, arb(0))
        found = [each + chance * weight for each, weight in zip(found, weights, strict=True)]
    # Beyond: two tails, each set anywhere between never and always.
    rest = 2 * ratio ** (farthest + 1) / (1 + ratio)
    return [each + rest * arb(0.5, 0.5) for each in found]


def _ball(number):
    number = Fraction(number)
    return arb(fmpq(number.numerator, number.denominator))


def climbed(values, moves, *, least, most, setting, generator, steps):
    """Neighbours that are farther and farther apart: single values or moves are changed while that helps.

    ``values`` and ``values + moves`` are the neighbours, every move between ``least`` and ``most``.
    """
    best = loss(values, values + moves, **setting)
    for _ in range(steps):
        place, by = generator.integers(len(values)), int(generator.choice((-4, -2, -1, 1, 2, 4)))
        other, moved = values.copy(), moves.copy()
        if generator.random() < 0.5:
            other[place] += by
        else:
            moved[place] = np.clip(moved[place] + by, least, most)
        found = loss(other, other + moved, **setting)
        if found >= best:
            best, values, moves = found, other, moved
    return best, values, moves
