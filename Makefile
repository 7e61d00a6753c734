# CPython 3.11 or newer and GNU make are all a fresh machine needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install demo run test lint format lock bench reference clean
.DEFAULT_GOAL := install

install: $(STAMP)

$(STAMP): requirements-dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("tracegrade needs CPython 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

demo: install
	$(BIN)/tracegrade demo

run: install
	$(BIN)/tracegrade run

test: lint
	$(BIN)/python -m pytest -n auto

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Pins every dependency by hash, without naming a registry: what the service needs, and what developers need.
# Needs uv.
LOCK := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-annotate --no-header
lock:
	$(LOCK) --group dev --upgrade --output-file requirements-dev.lock
	$(LOCK) --constraint requirements-dev.lock --output-file requirements.lock

bench: install
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Writes what is generated from the code: JSON schemas and reference pages.
reference: install
	$(BIN)/tracegrade schema config > config/tracegrade.schema.json
	$(BIN)/tracegrade schema criteria > config/criteria.schema.json
	$(BIN)/python -m collector.telemetry.reference > docs/metrics.md
	$(BIN)/python -m collector.frameworks_reference > docs/frameworks.md
	$(BIN)/python -m collector.evaluators_reference > docs/evaluators.md
