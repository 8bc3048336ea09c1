"""The paper's claims, each with a verdict, the number found and the setting.

A claim is judged only when its figure was computed, and a claim about data only on the real data.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from dpselect.paper.claims_analysis import ANALYSIS
from dpselect.paper.claims_data import DATA
from dpselect.paper.parts import Table
from dpselect.paper.verdicts import Claim, unjudged


def judge(tables: Mapping[str, Table]) -> Table:
    """The claims that these figures' tables decide, in the order of the report.

    >>> judge({}).columns.tolist()
    ['source', 'claim', 'verdict', 'found', 'setting']
    """
    found: list[Claim] = []
    for figure, table in tables.items():
        for rule in (*ANALYSIS.get(figure, ()), *DATA.get(figure, ())):
            found.extend(_fairly(claim, table) for claim in rule(table))
    return pd.DataFrame([claim.row() for claim in found], columns=Claim.columns())


def _fairly(claim: Claim, table: Table) -> Claim:
    """The claim, without a verdict where the table comes from a stand-in."""
    simulated = "simulated" in table.columns and bool(table["simulated"].any())
    return unjudged(claim) if simulated else claim
