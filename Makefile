# Bare `make` lists the targets; each sets up what it needs.
.DEFAULT_GOAL := help
.PHONY: help setup demo test check rule bench docs table clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH_READY := $(VENV)/.bench-ready

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## the pinned environment in .venv; quick when nothing changed

$(READY): pyproject.toml requirements/test.txt hatch_build.py $(wildcard src/tensafe/copies/walking/_*.[ch])
	@echo 'setting up $(VENV) from requirements/test.txt: about a minute'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq -r requirements/test.txt
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation -e .
	@touch $@

# Both commands must end with 1: the program with its own traceback, the linter with findings.
demo: $(READY) ## find the bugs of examples/, in a run and in the source
	@echo '$$ tensafe run examples/train_residual.py'
	@$(BIN)/tensafe run examples/train_residual.py || test $$? -eq 1
	@echo
	@echo '$$ tensafe check examples/'
	@$(BIN)/tensafe check examples/ || test $$? -eq 1

test: $(READY) ## every test; RULE=lost-write runs that rule's examples alone
	$(BIN)/python -m pytest -n auto $(if $(RULE),-k "$(RULE)")

check: $(READY) ## lint, format, types, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_import_direction.py

rule: $(READY) ## NAME=some-bad-pattern writes a new rule's file
	@test -n "$(NAME)" || { echo 'make rule: say which, as in `make rule NAME=some-bad-pattern`' >&2; exit 2; }
	$(BIN)/python -m tensafe.rules._skeleton $(NAME)

bench: $(BENCH_READY) ## what `run` costs a training step, how fast `check` reads, what looking and copying cost
	$(BIN)/python bench/run_overhead.py
	$(BIN)/python bench/check_speed.py
	$(BIN)/python bench/look_speed.py
	$(BIN)/python bench/copies.py
	$(BIN)/python bench/pickles.py
	$(BIN)/python bench/snapshots.py

$(BENCH_READY): $(READY) requirements/bench.txt
	@$(BIN)/python -m pip install -qq -r requirements/bench.txt
	@touch $@

docs: $(READY) ## the documentation site in site/, offline; docs/rules and docs/ops are written anew first
	$(BIN)/python -m tensafe.rules._pages
	$(BIN)/python -m tensafe.ops._pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo 'open site/index.html'

table: $(READY) ## the table of operations from the installed torch: src/tensafe/ops/table.json
	$(BIN)/python -m tensafe.ops.from_torch
	$(BIN)/python -m tensafe.ops._pages

clean: ## remove the environment, the site and every cache
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis
