"""New members of a kind that charge too little: the contract suites must find them by themselves."""

from __future__ import annotations

from tests.mutants.fault import fault

FAULTS = [
    fault(
        "a catalogued selection charges a quarter of its epsilon",
        "mechanisms/classical.py",
        "class PermuteAndFlip(ClassicalNoisyMax):\n",
        "class QuarterMax(ClassicalNoisyMax):\n"
        '    """Costs too little."""\n\n'
        "    law: ClassVar[Law] = LAPLACE\n\n"
        "    def epsilon(self, candidates: ArrayLike | None = None) -> float | FloatArray:\n"
        '        """Too little."""\n'
        "        return super().epsilon(candidates) / 4\n\n\n"
        "class PermuteAndFlip(ClassicalNoisyMax):\n",
        "tests/mechanisms/test_privacy.py::test_noisy_maxima_stay_within_their_epsilon",
        quick=True,
        also=(
            (
                "mechanisms/catalogue.py",
                "CATALOGUE: tuple[Entry, ...] = (\n",
                "CATALOGUE: tuple[Entry, ...] = (\n"
                '    Entry("quarter", "Quarter", "selection", "Laplace", "pure", "classical.QuarterMax"),\n',
            ),
        ),
    ),
    fault(
        "a catalogued selection draws less noise than it says",
        "mechanisms/classical.py",
        "class PermuteAndFlip(ClassicalNoisyMax):\n",
        "class QuietMax(ClassicalNoisyMax):\n"
        '    """Draws too little."""\n\n'
        "    law: ClassVar[Law] = LAPLACE\n\n"
        "    @property\n"
        "    def scales(self) -> tuple[float, ...]:\n"
        '        """Too little."""\n'
        "        return (self.scale / 4,)\n\n\n"
        "class PermuteAndFlip(ClassicalNoisyMax):\n",
        "tests/mechanisms/test_law.py::test_releases_made_one_by_one_follow_the_exact_law",
        also=(
            (
                "mechanisms/catalogue.py",
                "CATALOGUE: tuple[Entry, ...] = (\n",
                "CATALOGUE: tuple[Entry, ...] = (\n"
                '    Entry("quiet", "Quiet", "selection", "Laplace", "pure", "classical.QuietMax"),\n',
            ),
        ),
    ),
    fault(
        "a mechanism of a new kind has no suite",
        "mechanisms/catalogue.py",
        "CATALOGUE: tuple[Entry, ...] = (\n",
        "CATALOGUE: tuple[Entry, ...] = (\n"
        '    Entry("novel", "Novel", "novel", "Laplace", "pure", "classical.LaplaceNoisyMax"),\n',
        "tests/mechanisms/test_catalogue.py::test_every_mechanism_of_the_catalogue_has_a_contract_suite",
    ),
    fault(
        "a new filter says yes to everything",
        "composition/realised.py",
        "class RepairedReportingFilter(RealisedFilter):\n",
        "class LenientFilter(PureFilter):\n"
        '    """Lets everything through."""\n\n'
        '    name = "lenient"\n\n'
        "    def holds(self, books: Realised) -> bool:\n"
        '        """Always."""\n'
        "        return True\n\n\n"
        "class RepairedReportingFilter(RealisedFilter):\n",
        "tests/composition/test_filters.py::TestContract::test_it_charges_what_fits_and_nothing_else",
        quick=True,
    ),
    fault(
        "a new filter lets every run begin",
        "composition/declared.py",
        "class RenyiFilter(SummingFilter):\n",
        "class LenientFilter(ZCDPFilter):\n"
        '    """Lets every run begin, and counts none."""\n\n'
        '    name = "lenient"\n\n'
        "    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:\n"
        '        """Always."""\n'
        "        return RunTerms(allowed=math.inf, books=self._books)\n\n\n"
        "class RenyiFilter(SummingFilter):\n",
        "tests/composition/test_filters.py::TestContract::test_its_promise_covers_the_runs_it_lets_through",
    ),
    fault(
        "a new filter promises less than it lets through",
        "composition/declared.py",
        "class RenyiFilter(SummingFilter):\n",
        "class BoastfulFilter(ZCDPFilter):\n"
        '    """Says half of the true promise."""\n\n'
        '    name = "boastful"\n\n'
        "    def epsilon(self, *, delta: float = 0.0) -> float:\n"
        '        """Half."""\n'
        "        return super().epsilon(delta=delta) / 2\n\n\n"
        "class RenyiFilter(SummingFilter):\n",
        "tests/composition/test_filters.py::TestContract::test_its_promise_covers_the_randomised_responses_it_lets_through",
    ),
    fault(
        "a new filter on a ledger is made for no total",
        "ledger/filter.py",
        "def filter_on(",
        'class StrayLedgerFilter(DeclaredLedgerFilter):\n    """Nobody tests it."""\n\n\ndef filter_on(',
        "tests/ledger/test_filter.py::test_every_filter_on_a_ledger_is_made_for_one_of_these_totals",
    ),
]
