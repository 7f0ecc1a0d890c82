# The only entry to everything: each target sets up what it needs, and is quick the second time.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
PACKAGES := common accounts blobs billing scheduler worker_protocol metal_kernels marketplace
SUITE ?= all
# A file is one worker's, in the order of tests/conftest.py.
AT_ONCE := -n auto --dist loadfile --no-loadscope-reorder
T ?=

.PHONY: help setup demo serve test prove style format types bench clean
help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 10

setup: $(INSTALLED)  ## make .venv with everything that demo, test and bench need

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Nightshift needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[demo,dev,gpu]'
	@touch $@

demo: setup  ## train the digits job on three device processes and show what happened
	$(BIN)/python -m marketplace.demo

serve: setup  ## run the site with an in-process fleet manager on http://127.0.0.1:8000
	$(BIN)/python manage.py migrate --verbosity 0
	$(BIN)/python manage.py serve

test: setup  ## run every test, those that start whole sites by themselves at the end (T="-k words" to choose)
	@sh tests/install_programs.sh
ifeq ($(T),)
	$(BIN)/python -m pytest $(AT_ONCE) -m "not end_to_end and not exhaustive"
	$(BIN)/python -m pytest $(AT_ONCE) -m "end_to_end and not exhaustive"
else
	$(BIN)/python -m pytest $(T)
endif

prove: setup  ## run the long proofs too, which `make test` leaves out (half an hour and more)
	@sh tests/install_programs.sh
	$(BIN)/python -m pytest -n auto -m exhaustive

style: setup  ## lint, formatting and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

format: setup  ## put the code into the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: setup  ## mypy, strict
	$(BIN)/mypy $(PACKAGES) tests

bench: setup  ## measure beside the references (SUITE=training for one suite)
	$(BIN)/python -m tests.bench $(SUITE)

clean:  ## remove what setup and runs have made
	rm -rf .venv var .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
