"""The paper's figures and claims, recomputed on its data sets, with what came after beside them.

:func:`run` computes, draws and writes the page; :data:`FIGURES` names the figures, each a frozen
:class:`~lebensold2024.figure.Figure` with its work, its drawing and the claims it decides.
"""

from __future__ import annotations

from lebensold2024.runner import FIGURES as FIGURES
from lebensold2024.runner import run as run

__all__ = ["FIGURES", "run"]
