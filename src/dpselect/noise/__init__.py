"""Exact noise: random bits, draws refined only as far as needed, comparisons without rounding.

================================  ==================================================================
:mod:`~dpselect.noise.entropy`    random bits: the operating system's, or seeded ones
:mod:`~dpselect.noise.quantiles`  the laws: normal, Laplace, exponential, Gumbel
:mod:`~dpselect.noise.draw`       one lazy draw; exact comparison of noisy values
:mod:`~dpselect.noise.argmax`     which noisy value is the largest
:mod:`~dpselect.noise.scan`       which noisy values reach one noisy threshold
================================  ==================================================================
"""
