PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test verify fuzz lint generate bench clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# A current pip first: the launcher it writes starts with a third fewer modules.
$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(STAMP)  ## set up .venv and summarise resnet18
	$(BIN)/pttool model summary resnet18 -i 3,224,224

test: $(STAMP)  ## set up .venv and run the tests
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not verify'

verify: $(STAMP)  ## run the long sweeps too
	$(BIN)/python -m pytest

fuzz: $(STAMP)  ## feed a million mutated checkpoints to what reads them
	PTTOOL_FUZZ=1000000 $(BIN)/python -m pytest -q tests/core/ckpt/test_hostile.py

lint: $(STAMP)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

generate: $(STAMP)  ## rewrite completions, lists of names, the table of recipes and golden help texts
	$(BIN)/python -m pttool.completion
	$(BIN)/python -m pttool.core.recipes
	PTTOOL_REWRITE_GOLDEN=1 $(BIN)/python -m pytest -q tests/cli/test_help.py

bench: $(STAMP)  ## run the benchmarks
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.model
	$(BIN)/python -m benchmarks.eval
	$(BIN)/python -m benchmarks.ckpt
	$(BIN)/python -m benchmarks.video
	$(BIN)/python -m benchmarks.gpu
	$(BIN)/python -m benchmarks.env
	$(BIN)/python -m benchmarks.features
	$(BIN)/python -m benchmarks.profile

clean:  ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
