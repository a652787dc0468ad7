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
	touch $(STAMP)

demo: $(STAMP)  ## generate, ingest, check quality, describe, check load; ends with the path of an HTML report
	$(BIN)/gputwin demo -o demo

system:  ## what the suite uses beside Python: a browser to open reports in, Java for Spark
	@command -v chromium >/dev/null && command -v java >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium default-jre-headless >/dev/null; } || \
	  echo "chromium or java is missing: tests that need them are skipped"

test: $(STAMP) system  ## the whole suite
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

docs: $(STAMP)  ## pages generated from code
	$(BIN)/python -m docs.generate

clean:
	rm -rf $(VENV) demo build dist
