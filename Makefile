# Two commands for a fresh machine with Python >= 3.11 and make:
#   make demo    learn the example network and show it
#   make test    run every check and every test

PYTHON ?= python3
BIN := .venv/bin
MODEL := alarm-model.json
# The tests start hundreds of processes, each of which would otherwise compile all modules that it imports.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test lint style types pytest pytest-laws pytest-rest pytest-python pytest-oldest test-counters test-bounds test-oldest test-plain fuzz bench paper docs serve pictures notebooks package clean

help:
	@echo "make demo   learn the example network and show what was found"
	@echo "make test   run every check and every test"
	@echo "make test-counters  the contract and laws of counting, over every counter that this machine has, a GPU included"
	@echo "make lint   style, types and import rules only"
	@echo "make test-bounds, test-oldest, test-plain  the laws with every index checked, with the oldest versions that are supported, and"
	@echo "            with numba's public parts alone"
	@echo "make fuzz   inputs by chance for SECONDS=60, from a seed that is printed, or SEED=7"
	@echo "make bench  the benchmarks"
	@echo "make docs   the documentation, as pages in build/site; make serve shows them at a local address, where search works"
	@echo "make package  the wheel and the source archive, in dist/, tried in an empty environment"
	@echo "make paper  the paper's experiments, into docs/paper.md; LEAFWISE_DATA names the folder of promoters.csv and splice.csv"
	@echo "make clean  remove everything these commands made"

demo: .venv/installed
	$(BIN)/leafwise learn --example alarm --output $(MODEL)
	$(BIN)/leafwise show $(MODEL)
	@echo
	$(BIN)/leafwise show $(MODEL) --node SHUNT

# The tests in parts, two at a time, each with its output in one piece if make supports that. The second compiles
# nothing; the third begins when it is done, and finds most of what it needs compiled by the first.
test: style
	$(MAKE) -j2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) \
		pytest-laws pytest-python pytest-rest test-bounds test-oldest types

lint: style types

style: .venv/installed-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: .venv/installed-for-tests
	$(BIN)/mypy

pytest: .venv/installed-for-tests
	$(BIN)/python -m pytest

LAWS := tests/laws tests/contracts tests/golden tests/rivals tests/cli tests/browser tests/package

pytest-laws: .venv/installed-for-tests
	$(BIN)/python -m pytest $(LAWS)

pytest-rest: .venv/installed-for-tests
	$(BIN)/python -m pytest $(LAWS:%=--ignore=%)

# Compiled loops are invisible to coverage, and do not check indices: run the tests that reach them as plain Python, too.
pytest-python: .venv/installed-for-tests
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -q tests/unit tests/laws tests/contracts -m interpreted
	$(BIN)/coverage report

# The tests of counters, and of equal networks with all counters that this machine has: cores, shards, Dask, a GPU.
test-counters: .venv/installed-for-tests
	$(BIN)/python -c 'from leafwise.counters.gpu import _cupy; _cupy(); print("with a GPU")' 2>/dev/null || echo "without a GPU: see docs/scale.md"
	$(BIN)/python -m pytest tests/contracts/test_counters.py tests/laws/test_counters.py tests/laws/test_dask.py

# Each of these compiles everything again. The last one is not part of `make test`.
COMPILED := tests/unit/test_words.py tests/unit/test_sets.py tests/unit/test_references.py tests/unit/test_greedy.py tests/laws/test_oracle.py tests/laws/test_tables.py \
	tests/laws/test_exact.py

test-bounds: .venv/installed-for-tests
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=build/bounds $(BIN)/python -m pytest -q $(COMPILED)

# The oldest numba that is supported cannot be installed for later versions of Python.
test-oldest:
	@if $(PYTHON) -c 'import sys; sys.exit(sys.version_info >= (3, 14))'; then $(MAKE) --no-print-directory pytest-oldest; \
		else echo "not tested with the oldest versions that are supported: they are not for Python 3.14 or newer"; fi

pytest-oldest: build/oldest/installed
	NUMBA_CACHE_DIR=build/oldest/cache PYTHONPATH=src build/oldest/bin/python -m pytest -q -o filterwarnings=default $(COMPILED)

test-plain: .venv/installed-for-tests
	LEAFWISE_PLAIN_NUMBA=1 NUMBA_CACHE_DIR=build/plain $(BIN)/python -m pytest -q $(COMPILED)

SECONDS ?= 60
fuzz: .venv/installed-for-tests
	PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

bench: .venv/installed-for-tests
	$(BIN)/python -m benchmarks

paper: .venv/installed
	$(BIN)/leafwise reproduce all --data-dir "$(LEAFWISE_DATA)" --write docs/paper.md

docs: .venv/installed-for-tests
	$(BIN)/mkdocs build --strict

serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000

package: .venv/installed-for-tests
	$(BIN)/python -m hatchling build -d dist
	LEAFWISE_INSTALL_ALL=1 $(BIN)/python -m pytest -q tests/package

# These two make what the documentation shows; the tests make it again.
pictures: .venv/installed-for-tests
	$(BIN)/leafwise learn --example alarm --output $(MODEL)
	$(BIN)/leafwise show $(MODEL) --node SHUNT --output docs/pictures/shunt.svg
	$(BIN)/leafwise show $(MODEL) --output docs/pictures/alarm.svg

notebooks: .venv/installed-for-tests
	$(BIN)/python docs/scripts/run_notebooks.py docs/notebooks/*.ipynb

clean:
	rm -rf build dist .venv .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache $(MODEL)
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are older than pyproject.toml exactly when its dependencies may have changed.
.venv/installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable .
	@touch $@

.venv/installed-for-tests: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[test]'
	@touch $@

build/oldest/installed: pyproject.toml tests/oldest.py
	$(PYTHON) -m venv build/oldest
	build/oldest/bin/python -m pip install --quiet --no-compile $$($(PYTHON) tests/oldest.py) 'pytest>=8' 'hypothesis>=6.100'
	@touch $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "leafwise needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv .venv
