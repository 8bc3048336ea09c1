"""What every mechanism is: queries of one family, and noise of one law with a scale or two, private or reproducible."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from dpselect.checks import one, positive, refuse
from dpselect.privacy.family import QueryFamily, check_family

if TYPE_CHECKING:
    from dpselect.noise.entropy import Entropy
    from dpselect.noise.quantiles import Law

#: ``private`` when the noise came from the operating system, ``reproducible`` when a seed was passed: a
#: reproducible answer can be undone by whoever knows the seed and must not be shown as private.
Noise: TypeAlias = Literal["private", "reproducible"]


def noise_of(entropy: Entropy) -> Noise:
    """What noise from this source may be called.

    >>> from dpselect.noise.entropy import SeededEntropy
    >>> noise_of(SeededEntropy(1))
    'reproducible'
    """
    if isinstance(entropy, type) or not hasattr(entropy, "words"):
        raise refuse("entropy", entropy, "left out, or SeededEntropy(seed) for a reproducible answer")
    return "private" if entropy.private else "reproducible"


@dataclass(frozen=True)
class Mechanism(ABC):
    """The family and the scales, checked once; a subclass has a field for each of its ``noise_names``."""

    #: The law of the noise, at scale 1.
    law: ClassVar[Law]
    #: What the noise is called among the parameters.
    noise_names: ClassVar[tuple[str, ...]] = ("scale",)

    family: QueryFamily

    def __post_init__(self) -> None:
        check_family(self.family)
        for name in self.noise_names:
            object.__setattr__(self, name, one(positive, name, getattr(self, name)))

    @cached_property
    def scales(self) -> tuple[float, ...]:
        """What the noise is multiplied by, in the order of ``noise_names``."""
        return tuple(getattr(self, name) for name in self.noise_names)
