"""The figures by name, in the order of the report."""

from __future__ import annotations

from dpselect.paper import above_threshold, budget_stop, noisy_max, offline, online, spending
from dpselect.paper.ablation import ABLATION
from dpselect.paper.corrections import CORRECTIONS
from dpselect.paper.figure import Figure
from dpselect.paper.monte_carlo import MONTE_CARLO
from dpselect.paper.quadrature import QUADRATURE
from dpselect.paper.rare_events import RARE
from dpselect.paper.separation import SEPARATION
from dpselect.paper.transfer import TRANSFER

#: Name → figure.
FIGURES: dict[str, Figure] = {
    "epsilon-candidates": noisy_max.CURVES,
    "heatmap-max": noisy_max.HEAT_MAP,
    "population": noisy_max.SWEEP,
    "monte-carlo": MONTE_CARLO,
    "quadrature": QUADRATURE,
    "heatmap-at": above_threshold.HEAT_MAP,
    "loss-threshold": above_threshold.LOSSES,
    "offline-near": offline.NEAR,
    "offline-lcl": offline.LCL,
    "offline-uci": offline.UCI,
    "online-uci": online.UCI,
    "online-lcl": online.LCL,
    "separation": SEPARATION,
    "spend-uci": spending.UCI,
    "spend-lcl": spending.LCL,
    "budget-stop": budget_stop.STOP,
    "cap": budget_stop.CAP,
    "ablation": ABLATION,
    "transfer": TRANSFER,
    "rare-events": RARE,
    "corrections": CORRECTIONS,
}
