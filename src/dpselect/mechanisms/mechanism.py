"""What every mechanism is: queries of one family, and noise of one law with a scale or two."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from dpselect.checks import one, positive
from dpselect.noise.quantiles import Law
from dpselect.privacy.family import QueryFamily, check_family


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
