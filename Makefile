# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint bench docs system clean

$(STAMP): requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/gputwin compile
	touch $(STAMP)

demo: $(STAMP)  ## a full study on generated data, from raw files to a conclusion; ends with the path of an HTML report
	$(BIN)/gputwin demo -o demo

system:  ## what the suite uses beside Python: a browser, Java for Spark, npm for axe-core (checks of accessibility)
	@missing=""; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	command -v java >/dev/null || missing="$$missing default-jre-headless"; \
	command -v npm >/dev/null || missing="$$missing npm"; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq; \
	  for package in $$missing; do DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$package >/dev/null; done; \
	fi; \
	for program in chromium java npm; do command -v $$program >/dev/null || echo "$$program is missing: tests that need it are skipped"; done
	@[ -d tests/browser/node_modules/axe-core ] || ! command -v npm >/dev/null || \
	  npm ci --silent --no-progress --prefix tests/browser >/dev/null || echo "axe-core could not be installed: tests that need it are skipped"

test: $(STAMP) system  ## the whole suite
	$(BIN)/gputwin compile --all --quiet
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(STAMP)  ## style, types, and that rooms depend one way
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)  ## the README's speed figures, as ratios within one run
	$(BIN)/gputwin bench
	$(BIN)/python -m benchmarks.generation
	$(BIN)/python -m benchmarks.ingestion
	$(BIN)/python -m benchmarks.analysis
	$(BIN)/python -m benchmarks.profiling

docs: $(STAMP)  ## pages generated from code, and all pages as a site in build/site
	$(BIN)/python -m docs.generate
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) demo build dist
