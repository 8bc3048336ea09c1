# Everything a newcomer needs: `make demo`, `make test`. Both set up their own environment in .venv.
PYTHON ?= python3
BIN := .venv/bin
# Two workers fill the two cores the suite is sized for.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist worksteal

.PHONY: help setup demo lint types test test-full mutants bench clean

help:            ## what each target does
	@grep -E '^[a-z-]+: .*##|^[a-z-]+:  *##' Makefile | sed -E 's/:.*##/\t/'

.venv/.ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@# MariaDB's driver is built from source; without its headers, the tests that need it are skipped and say so.
	@if command -v mariadb_config || command -v mysql_config; then $(BIN)/python -m pip install --quiet --editable '.[mysql]' || true; fi >/dev/null
	@touch $@

setup: .venv/.ready  ## create .venv and install the project with all it needs

demo: setup      ## the main job, end to end, on simulated data
	$(BIN)/dpselect demo

lint: setup      ## style
	$(BIN)/ruff check src papers tests benchmarks
	$(BIN)/ruff format --check src papers tests benchmarks

types: setup     ## strict types
	$(BIN)/mypy

test: lint types ## lint, types and the test suite (minutes)
	$(PYTEST) --timeout 900 -m "not slow"

test-full: lint types  ## the same with the slow suites, looking for new examples
	DPSELECT_EXPLORE=1 $(PYTEST)

mutants: setup   ## faults on purpose, one at a time: which do the tests not notice? (part of test-full)
	$(BIN)/python -m tests.mutants

bench: setup     ## every benchmark, one after the other
	for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:           ## remove what the targets above made
	rm -rf .venv out build dist
