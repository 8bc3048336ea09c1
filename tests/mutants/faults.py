# ruff: noqa: E501
"""One-line faults that the tests must notice: each would break a promise, or state a cost below the truth.

A fault replaces one piece of text, which must occur exactly once in its file, by another; the tests named with it must
then fail. Where code has moved, ``make mutants`` says which fault no longer finds its text: put it where the idea lives
now, rather than drop it.
"""

from __future__ import annotations

from tests.mutants.fault import Fault, fault
from tests.mutants.planted import composition, dataset, equivalent, ledger, mechanisms, members, tables

ATTACKS = "tests/composition/test_attacks.py"
FILTERS = "tests/composition/test_filters.py"
VECTORS = "tests/composition/test_sparse_vector.py"
RATION = "tests/composition/test_ration.py"
SOUND = "tests/composition/test_soundness.py"
INTERRUPTED = "tests/composition/test_interruptions.py"
SAVED = "tests/composition/test_saved_state.py"
ODOMETER = "tests/composition/test_odometer.py"
ENTROPY = "tests/noise/test_entropy.py"
SCAN = "tests/noise/test_scan.py"
EXACT = "tests/privacy/test_exact_runs.py"
LOSSES = "tests/privacy/test_losses.py"
BOUNDS = "tests/privacy/test_guarantees.py"
FAMILY = "tests/privacy/test_family.py"
MECHANISMS = "tests/mechanisms/test_privacy.py"
SETS = "tests/mechanisms/test_set_above_threshold.py"
CHAINS = "tests/mechanisms/test_chains.py"
RUNS = "tests/mechanisms/test_runs.py"
VALUES = "tests/mechanisms/test_values.py"
DISCRETE = "tests/mechanisms/test_discrete.py"
ANSWERS = "tests/tables/test_answers.py"
NEIGHBOURS = "tests/tables/test_neighbours.py"
WATCH = "tests/cli/test_watch.py"
DATASET = "tests/dataset/test_dataset.py"
STORE = "tests/ledger/test_store.py"
CHAIN = "tests/ledger/test_chain.py"
DISK = "tests/ledger/test_faults.py"
STREAMS = "tests/ledger/test_watch.py"
CLIPPED = f"{SOUND}::test_no_transcript_costs_more_than_the_odometer_says[general, resampled, clipped, thresholds and mechanisms adaptive]"
PLAIN = f"{SOUND}::test_no_transcript_costs_more_than_the_odometer_says[general, resampled]"


REALISED, DECLARED, FILTER = "composition/realised.py", "composition/declared.py", "composition/filter.py"
RUN, PAID_RUN = "mechanisms/run.py", "composition/budgeted_run.py"
VECTOR, CLIP = "composition/sparse_vector.py", "mechanisms/values.py"
COSTS, SUMS, STATE, METER = (
    "composition/costs.py",
    "rounding.py",
    "composition/saved_state.py",
    "composition/odometer.py",
)
GAUSSIAN, RELEASES = "mechanisms/gaussian_above_threshold.py", "mechanisms/release.py"
WHOLE_SET, WEIGHTS = "mechanisms/set_above_threshold.py", "mechanisms/chains.py"
BUDGET, LEDGER, STRETCHES = "dataset/budget.py", "ledger/store.py", "ledger/stretches.py"

FAULTS: list[Fault] = [
    # What a question may cost, and whether it is counted.
    fault(
        "a top is not counted",
        RUN,
        "            self._answered(below, above + 1)\n",
        "            self._answered(below, above)\n",
        PLAIN,
        VECTORS,
        quick=True,
    ),
    fault(
        "a silence is not counted",
        RUN,
        "        self._answered(below + 1, above)\n",
        "        self._answered(below, above)\n",
        PLAIN,
        VECTORS,
        quick=True,
    ),
    fault(
        "the last look at the room is left out",
        RUN,
        "if below + questions - 1 > reach.below or above + tops - 1 > reach.above:",
        "if False:",
        f"{ATTACKS}::TestRoomIsLookedAtRightBeforeTheQuestion",
    ),
    fault(
        "questions under way cost nothing",
        RUN,
        "        asked = below, above, questions, tops\n",
        "        asked = below, above, 0, 0 * tops\n",
        INTERRUPTED,
        ATTACKS,
    ),
    fault(
        "the worst answer to an interrupted question is a silence",
        RUN,
        "return max(loss(below + due, above), loss(below + due - 1, above + 1))",
        "return loss(below, above)",
        INTERRUPTED,
    ),
    fault(
        "the stated loss is cut to the budget",
        PAID_RUN,
        "return allowed if allowed < found <= allowed * ROUNDING else found",
        "return min(allowed, found)",
        ATTACKS,
        quick=True,
    ),
    fault(
        "the room is one question too large",
        "composition/loss_table.py",
        "return Reach(found, 0, final=True)",
        "return Reach(found + 1, 0, final=True)",
        PLAIN,
        VECTORS,
    ),
    fault(
        "only a silence is looked at before a question",
        "composition/loss_table.py",
        "self._worst = np.maximum(silent[1:], topped)",
        "self._worst = silent[1:]",
        PLAIN,
        VECTORS,
    ),
    fault(
        "a kept threshold looks at one answer only",
        "composition/loss_table.py",
        "return max(self.loss(below + 1, above), self.loss(below, above + 1))",
        "return self.loss(below + 1, above)",
        VECTORS,
        SOUND,
    ),
    fault(
        "no second look after reading the value",
        VECTOR,
        "                # Turning it into a number may have run code of the caller's, which may itself have asked.\n                self._make_room()\n",
        "",
        f"{ATTACKS}::TestRoomIsLookedAtRightBeforeTheQuestion",
    ),
    fault(
        "another's run is let go",
        VECTOR,
        "self._run = None if self._run is run else self._run",
        "self._run = None",
        f"{ATTACKS}::TestRoomIsLookedAtRightBeforeTheQuestion",
    ),
    fault(
        "a new run takes the place of another's",
        VECTOR,
        "if self._run is None and self._open and self._plan is plan: run.place",
        "if self._plan is plan: run.place",
        f"{ATTACKS}::TestRoomIsLookedAtRightBeforeTheQuestion",
    ),
    fault(
        "the open run is not in what was spent",
        VECTOR,
        "return round_up(total if run is None else total + in_units(run.spent))",
        "return round_up(total)",
        VECTORS,
    ),
    fault(
        "a run is begun for a mechanism that was switched away",
        VECTOR,
        "self._open and self._plan is plan: run.place",
        "self._open: run.place",
        f"{ATTACKS}::TestRoomIsLookedAtRightBeforeTheQuestion",
    ),
    fault(
        "a question cut for one mechanism is put to another",
        VECTOR,
        "            if run.plan is not plan:\n                raise _switched()\n",
        "",
        f"{ATTACKS}::TestRoomIsLookedAtRightBeforeTheQuestion",
    ),
    fault(
        "a run settled in between answers",
        RUN,
        "if self._counts is counts and not self.done: self._counts = asked",
        "if self._counts is counts: self._counts = asked",
        f"{ATTACKS}::TestRoomIsLookedAtRightBeforeTheQuestion",
    ),
    fault(
        "a run's terms overwrite what a handler charged",
        FILTER,
        "self._books = books if self._held is held else self._books",
        "self._books = books",
        f"{ATTACKS}::TestRoomIsLookedAtRightBeforeTheQuestion",
    ),
    fault(
        "a mechanism's run forgets a question that was broken off",
        RUN,
        "return worst_loss(self._price, *self._counts)",
        "return self._price(*self._counts[:2])",
        RUNS,
    ),
    # The cut around the threshold.
    fault(
        "an own threshold is not clipped above",
        CLIP,
        "return self.upper if number > self.upper else number",
        "return number",
        CLIPPED,
    ),
    fault(
        "an own threshold is not clipped below",
        CLIP,
        "        if number < self.lower:\n            return self.lower\n",
        "",
        CLIPPED,
        quick=True,
    ),
    fault(
        "many values are not clipped",
        CLIP,
        "cut: FloatArray = np.clip(numbers.array, self.lower, self.upper)",
        "cut: FloatArray = numbers.array",
        VECTORS,
    ),
    fault(
        "the loss is that of another range",
        CLIP,
        "self.clipped = replace(watcher, family=near)",
        "self.clipped = replace(watcher, family=replace(near, lower=near.lower / 2, upper=near.upper / 2, "
        "sensitivity=near.sensitivity / 2))",
        CLIPPED,
    ),
    # Filters.
    fault(
        "a filter lets one release too many",
        REALISED,
        "        return books.losses <= self._limit_units\n",
        "        return books.losses <= 2 * self._limit_units\n",
        FILTERS,
        quick=True,
    ),
    fault(
        "a run's loss is not counted",
        REALISED,
        "        return Realised(books.losses + in_units(run_cost(epsilon)), books.chances)\n",
        "        return books\n",
        FILTERS,
        VECTORS,
        quick=True,
    ),
    fault(
        "a capped run pays nothing where its last silence is dear",
        REALISED,
        "if horizon is not None and horizon < affordable:",
        "if horizon is not None and horizon <= affordable:",
        SOUND + "::test_a_run_capped_where_its_last_silence_costs_too_much_pays_for_the_chance",
        quick=True,
    ),
    fault(
        "chances of a run that overshoots are not added",
        REALISED,
        "self._books.chances + in_units(chance)",
        "in_units(chance)",
        SOUND + "::test_the_repaired_filter_keeps_its_promise_on_the_counter_example",
    ),
    fault(
        "the chance is that of one question more",
        REALISED,
        "affordable = 0 if longest is None else longest + 1",
        "affordable = 0 if longest is None else longest + 2",
        SOUND + "::test_the_repaired_filter_keeps_its_promise_on_the_counter_example",
        SOUND + "::test_a_run_capped_where_its_last_silence_costs_too_much_pays_for_the_chance",
    ),
    fault(
        "ex-post losses are charged",
        COSTS,
        "    if isinstance(loss, RealisedLoss):\n",
        "    if False:\n",
        ATTACKS,
        quick=True,
    ),
    fault("open runs are charged", COSTS, "        if isinstance(cost, OpenRun):\n", "        if False:\n", ATTACKS),
    fault(
        "a delta is left out of a pure budget",
        REALISED,
        "            if cost.loss.delta > 0:\n",
        "            if False:\n",
        ATTACKS,
        FILTERS,
    ),
    fault(
        "a pure loss is a quarter of its rho", COSTS, "return float(pure_rho(", "return 0.25 * float(pure_rho(", ATTACKS
    ),
    fault("the order is left out of a Renyi cost", COSTS, "self._rho * order * UP", "self._rho * UP", ATTACKS),
    fault(
        "squares lose their factor in quadrature",
        DECLARED,
        "math.sqrt(-2.0 * math.log(self._slack) * squares)",
        "math.sqrt(-math.log(self._slack) * squares)",
        FILTERS,
    ),
    fault(
        "deltas are not added",
        DECLARED,
        "            books.deltas + in_units(loss.delta),\n",
        "            in_units(loss.delta),\n",
        FILTERS,
    ),
    fault(
        "a declared run is free",
        DECLARED,
        "        return RunTerms(allowed=math.inf, books=books)\n",
        "        return RunTerms(allowed=math.inf, books=self._books)\n",
        FILTERS,
    ),
    fault(
        "GDP costs add without squares",
        DECLARED,
        "        return in_units(value) ** 2\n",
        "        return in_units(value)\n",
        FILTERS,
    ),
    fault(
        "what is charged while a run is open is let through",
        FILTER,
        "                if self._held is not None:\n                    raise StateRefused(\n",
        "                if False:\n                    raise StateRefused(\n",
        f"{FILTERS}::TestContract::test_an_open_run_holds_the_budget",
        also=(
            (
                FILTER,
                "if self._books is books and self._held is None: self._books",
                "if self._books is books: self._books",
            ),
        ),
    ),
    fault(
        "a filter works in a forked child",
        FILTER,
        "        if self._process != process():\n",
        "        if False:\n",
        FILTERS,
        ATTACKS,
    ),
    fault(
        "two states of one budget",
        FILTER,
        "if self._saved_by is not None and self._saved_by() is not owner:",
        "if False:",
        f"{ATTACKS}::TestOneBudgetIsSavedOnce",
    ),
    fault("sums are rounded down", SUMS, "    if kept << spare != units:\n        kept += 1\n", "", FILTERS, ODOMETER),
    fault(
        "a restored run is free",
        FILTER,
        "            self._books = self.add_run(self._books, epsilon)\n",
        "            pass\n",
        SAVED,
    ),
    fault(
        "a run of negative cost gives budget back",
        REALISED,
        "in_units(run_cost(epsilon))",
        "in_units(epsilon)",
        FILTERS,
    ),
    fault("a saved state is not compared with its digest", STATE, "hmac.compare_digest(told, expected)", "True", SAVED),
    fault(
        "an odometer forgets what it followed",
        METER,
        "                    epsilon, delta = epsilon + in_units(loss.epsilon), delta + in_units(loss.delta)\n                    self._remember",
        "                    self._remember",
        ODOMETER,
    ),
    fault(
        "an odometer counts a cost that fell",
        METER,
        "epsilon=max(self.most.epsilon, now.epsilon)",
        "epsilon=now.epsilon",
        ODOMETER,
    ),
    # Bounds.
    fault(
        "the shift has one move per question",
        GAUSSIAN,
        "most = relative_shift(self.family.monotone) * self.family.sensitivity",
        "most = self.family.sensitivity",
        f"{EXACT}::test_questions_that_move_against_each_other_need_both_moves_in_the_shift",
        quick=True,
    ),
    fault(
        "a profile without the number of outputs",
        "privacy/profiles.py",
        "np.nextafter(n * gaussian_delta(eps, shift=mu), np.inf)",
        "np.nextafter(gaussian_delta(eps, shift=mu) / n, np.inf)",
        EXACT,
        BOUNDS,
    ),
    fault(
        "Zhu and Wang without gamma/(gamma - 1)",
        "privacy/zhu_wang.py",
        "gammas / (gammas - 1.0) * grown * (0.5",
        "grown * (0.5",
        f"{EXACT}::test_the_zhu_wang_bound_is_its_formula_at_the_best_gamma",
        quick=True,
    ),
    fault(
        "monotone for no reason",
        "privacy/family.py",
        "return 1 if monotone else 2",
        "return 1",
        f"{EXACT}::test_no_noisy_max_of_three_has_a_larger_delta_than_its_profile",
        LOSSES,
    ),
    fault(
        "Laplace runs cost one move less",
        "privacy/classical.py",
        "moved = threshold_cost + 2 * np.minimum(below, above) * query_cost",
        "moved = threshold_cost + np.minimum(below, above) * query_cost",
        MECHANISMS,
        "tests/mechanisms/test_contract.py",
    ),
    fault(
        "exponential runs have a free threshold",
        "privacy/classical.py",
        "np.where(np.asarray(below) > 0, threshold_cost + above * each, above * query_cost)",
        "np.where(np.asarray(below) > 0, above * each, above * query_cost)",
        MECHANISMS,
        "tests/mechanisms/test_contract.py",
    ),
    fault(
        "a cut sensitivity is rounded to nearest",
        "privacy/family.py",
        "cut = min(self.sensitivity, _difference_up(high, low))",
        "cut = min(self.sensitivity, high - low)",
        FAMILY,
    ),
    fault(
        "a grid's sensitivity is rounded down",
        "privacy/release.py",
        "math.ceil(self.in_steps(family.sensitivity))",
        "math.floor(self.in_steps(family.sensitivity))",
        FAMILY,
    ),
    fault(
        "a rational is rounded down",
        SUMS,
        "return math.nextafter(number, math.inf) if Fraction(number) < value else number",
        "return number",
        "tests/mechanisms/test_contract.py",
        MECHANISMS,
        RUNS,
    ),
    # Noise.
    fault(
        "halved noise",
        RELEASES,
        "return discrete_gaussian(size, sigma=scale, entropy=entropy)",
        "return discrete_gaussian(size, sigma=scale / 2, entropy=entropy)",
        DISCRETE,
        "tests/mechanisms/test_law.py",
        MECHANISMS,
    ),
    fault(
        "a child draws what its parent drew",
        "noise/entropy.py",
        "        self._stream = stream = _Keystream(self._key)\n",
        "        stream = self._stream\n",
        ENTROPY,
        quick=True,
    ),
    fault(
        "a child with its parent's number goes on",
        "ownership.py",
        "        owner._process = _NOBODY\n",
        "        pass\n",
        f"{ATTACKS}::test_a_child_forked_by_python_owns_nothing_whatever_its_number",
    ),
    fault(
        "cells are drawn without looking at the process",
        "noise/entropy.py",
        "        stream = self._stream\n        if stream.process != process():\n            stream = self._moved()\n        with stream.lock:\n            if stream.drawing:",
        "        stream = self._stream\n        with stream.lock:\n            if stream.drawing:",
        ENTROPY,
    ),
    fault(
        "a handler shares the bytes of a cell",
        "noise/entropy.py",
        "            if stream.drawing:\n",
        "            if False:\n",
        ENTROPY,
    ),
    fault(
        "a handler shares the bytes of the pool",
        "noise/entropy.py",
        "if count > _POOL_BYTES // 2 or stream.drawing:",
        "if count > _POOL_BYTES // 2:",
        ENTROPY,
    ),
    fault("the key is never replaced", "noise/entropy.py", "            self._left -= length\n", "", ENTROPY),
    # The doors.
    fault(
        "values outside the range come in",
        "mechanisms/values.py",
        "    if not (family.lower <= least and largest <= family.upper):\n",
        "    if False:\n",
        VALUES,
    ),
    fault(
        "an empty text is a person",
        "tables/readings.py",
        'return Part(column, column != "")',
        "return Part(column)",
        ANSWERS,
    ),
    fault(
        "DuckDB decides by a file's statistics whether NaN counts",
        "tables/readings.py",
        "return _duckdb_is_finite()(number) & within if",
        "return within if",
        "tests/attacks/test_one_odd_row.py::test_one_infinity_does_not_decide_whether_the_nan_of_others_count",
    ),
    fault(
        "long numbers are refused on standard input",
        "cli/stream.py",
        "    if found is None:\n",
        "    if found is None or len(written) > 60:\n",
        WATCH + "::test_a_number_is_read_whatever_its_length",
    ),
    # Rations.
    fault(
        "a rationed answer is charged half",
        "composition/ration.py",
        "paid + in_units(upward(self._delta / Fraction(scale)))",
        "paid + in_units(upward(self._delta / Fraction(scale) / 2))",
        RATION,
    ),
    fault(
        "rationed answers of a general family pay as monotone ones",
        "composition/ration.py",
        "each = relative_shift(watcher.family.monotone)",
        "each = 1",
        RATION,
    ),
    fault(
        "a rationed budget pays for the common answer",
        "composition/ration.py",
        """        rare = above if self._ration.rare == "above" else below\n        return round_up""",
        """        rare = below if self._ration.rare == "above" else above\n        return round_up""",
        RATION,
    ),
    fault(
        "the threshold of a rationed budget is free",
        "composition/ration.py",
        "return round_up(self._first + self._ladder[rare])",
        "return round_up(self._ladder[rare])",
        RATION,
    ),
    # A whole set.
    fault(
        "the line of a whole set has no noise",
        WHOLE_SET,
        "            level += int(discrete_laplace(",
        "            level += 0 * int(discrete_laplace(",
        SETS,
        quick=True,
    ),
    fault(
        "a whole set is drawn with half its noise",
        WHOLE_SET,
        "draw(over, scale=float(grid.in_steps(self.scale))",
        "draw(over, scale=0.5 * float(grid.in_steps(self.scale))",
        SETS,
    ),
    fault(
        "the sum of the weights of a whole set costs nothing",
        WHOLE_SET,
        "each = 2 * max(high - middle",
        "each = max(high - middle",
        SETS,
    ),
    fault(
        "moving the line of a whole set costs nothing",
        WHOLE_SET,
        "costs.append(abs(middle) / grid.in_steps(self.scale_threshold) + each)",
        "costs.append(each)",
        SETS,
    ),
    fault(
        "a class weight forgets the values behind the gap it opens",
        WEIGHTS,
        "ties[before + after, over_gap] - kept",
        "-kept",
        CHAINS,
    ),
    fault(
        "free values of a chain do not look ahead",
        WEIGHTS,
        "np.where(following < number, following - place, _NONE)",
        "np.where(following < number, _NONE, _NONE)",
        CHAINS,
    ),
    fault(
        "free values of a chain forget the one before",
        WEIGHTS,
        "return sides[0], np.maximum(*sides)",
        "return sides[0], sides[0]",
        CHAINS,
    ),
    # A data set's budget, in memory.
    fault(
        "a peak is charged once its rows are read",
        "dataset/peak.py",
        "            account.budget.charge(self.promise, parameter=self.priced_by)\n",
        "            read()\n            account.budget.charge(self.promise, parameter=self.priced_by)\n",
        f"{DATASET}::test_a_failed_reading_is_counted_since_it_was_charged_before",
    ),
    fault(
        "a data set's budget counts nothing",
        BUDGET,
        "            self._filter.charge(cost.epsilon)\n",
        "            pass\n",
        f"{DATASET}::test_the_budget_holds_over_several_questions_and_a_refusal_costs_nothing",
    ),
    fault(
        "a data set's budget takes no notice of a delta",
        BUDGET,
        "        if cost.delta > 0 and self.total < math.inf:\n",
        "        if False:\n",
        "tests/dataset/test_everyday.py::test_a_total_of_epsilon_alone_takes_no_delta",
    ),
    fault(
        "a forked child shares its parent's budget",
        BUDGET,
        "        if self._process != process():\n",
        "        if False:\n",
        "tests/dataset/test_questions_kept.py::test_a_forked_child_has_no_share_in_the_budget",
    ),
    # A ledger.
    fault(
        "a ledger looks at each question's cost alone",
        LEDGER,
        "        if not total.fits(head.sums + amounts):\n",
        "        if not total.fits(amounts):\n",
        f"{STORE}::TestAsking::test_what_does_not_fit_is_refused_and_nothing_is_drawn_or_written",
    ),
    fault(
        "a forked child uses its parent's ledger",
        "ledger/database.py",
        "        self._process = owned_here(self)\n",
        "        self._process = process()\n",
        f"{STORE}::TestOpening::test_a_forked_child_must_open_it_again",
    ),
    fault(
        "a question that has its answer is drawn again",
        LEDGER,
        "        if reservation.settled is not None:\n",
        "        if False:\n",
        f"{STORE}::TestSameQuestion::test_it_finds_the_first_answer_and_spends_nothing",
    ),
    fault(
        "a question asked afresh is the one asked before",
        LEDGER,
        '        body = written("question", question)\n        mark = secrets.token_hex(32) if',
        '        body, afresh = written("question", question), False\n        mark = secrets.token_hex(32) if',
        f"{STORE}::TestSameQuestion::test_afresh_or_with_another_key_it_is_paid_again",
    ),
    fault(
        "a question's key is left out",
        LEDGER,
        "secrets.token_hex(32) if afresh else key_of(body, key)",
        "secrets.token_hex(32) if afresh else key_of(body, None)",
        f"{STORE}::TestSameQuestion::test_afresh_or_with_another_key_it_is_paid_again",
    ),
    fault(
        "what was promised with a delta is settled at less",
        LEDGER,
        "self._total.realised and not amounts.delta:",
        "self._total.realised:",
        f"{STORE}::TestAsking::test_what_was_promised_with_a_delta_is_not_settled_at_less",
    ),
    fault(
        "a declared cost comes back",
        LEDGER,
        "if cost is not None and self._total.realised and",
        "if cost is not None and",
        f"{STORE}::TestAsking::test_a_declared_cost_does_not_come_back",
    ),
    fault(
        "an answer that could not be written stays open",
        LEDGER,
        "settled.body != body)\n        return self._stands(reservation, problem)\n",
        "settled.body != body)\n        raise problem\n",
        f"{DISK}::test_whether_an_answer_finds_room_cannot_be_tried_twice_under_one_charge",
    ),
    fault(
        "a stretch that could not be written stays open",
        STRETCHES,
        "                    self._ledger.lose(old)\n",
        "                    pass\n",
        f"{STREAMS}::TestTable::test_a_stretch_that_the_ledger_did_not_take_is_lost_and_not_drawn_again",
    ),
    fault(
        "a later stretch is taken up again",
        STRETCHES,
        "found.settled is None and self._unseen and not self.earlier:",
        "found.settled is None and self._unseen:",
        f"{STREAMS}::TestTable::test_killed_between_stretches_every_answer_that_is_kept_stays_paid",
    ),
    fault(
        "an altered entry passes the look at the whole chain",
        "ledger/chain.py",
        "        if digest_of(entry, self._dataset) != entry.digest:\n",
        "        if False:\n",
        f"{CHAIN}::test_an_altered_entry_is_found",
    ),
    fault(
        "an altered answer is repeated",
        "ledger/book.py",
        "        if digest_of(entry, self.name) != entry.digest:\n",
        "        if False:\n",
        f"{CHAIN}::test_an_edited_answer_is_not_repeated",
    ),
    fault(
        "an older copy takes the ledger's place",
        "ledger/book.py",
        "        if head.number < seen.number or digest != seen.digest:\n",
        "        if False:\n",
        f"{DISK}::TestReplacedFile::test_older_content_copied_into_the_same_file_is_refused",
    ),
    *members.FAULTS,
    *equivalent.FAULTS,
    *mechanisms.FAULTS,
    *composition.FAULTS,
    *ledger.FAULTS,
    *dataset.FAULTS,
    *tables.FAULTS,
]
