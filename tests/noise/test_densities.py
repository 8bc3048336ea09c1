"""Densities and distribution functions agree with the quantile functions that the draws come from."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.noise.quantiles import EXPONENTIAL, GUMBEL, LAPLACE, NORMAL, Law

every_law = pytest.mark.parametrize("law", [NORMAL, LAPLACE, EXPONENTIAL, GUMBEL], ids=lambda law: law.name)


@every_law
def test_the_distribution_function_undoes_the_quantile_function(law: Law) -> None:
    p = np.concatenate([np.geomspace(1e-12, 0.5, 200)])
    assert np.exp(law.log_cdf(law.from_left(p))) == pytest.approx(p, rel=1e-9)
    assert np.exp(law.log_survival(law.from_right(p))) == pytest.approx(p, rel=1e-9)


@every_law
def test_the_density_is_the_slope_of_the_distribution_function(law: Law) -> None:
    x = np.linspace(0.05, 6, 100)
    x = np.concatenate([x, -x]) if law.least < 0 else x
    step = 1e-5
    slope = (np.exp(law.log_cdf(x + step)) - np.exp(law.log_cdf(x - step))) / (2 * step)
    assert np.exp(law.log_density(x)) == pytest.approx(slope, rel=1e-5, abs=1e-9)


def test_one_sided_noise_has_nothing_below_its_least() -> None:
    below = np.array([-1.0, -1e-300])
    assert (EXPONENTIAL.log_density(below) == -np.inf).all()
    assert (EXPONENTIAL.log_cdf(below) == -np.inf).all()
    assert (EXPONENTIAL.log_survival(below) == 0).all()
