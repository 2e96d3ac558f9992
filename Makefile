# The targets of spicegraph. `make demo` and `make test` need nothing but Python 3.11+ and make: they set up first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Tests that start servers wait much of their time: one more worker than there are cores. A file's fixtures are made once.
SHARED = -n $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)') --dist loadgroup

PYTEST = $(BIN)/python -m pytest $(SHARED) --durations=60 --junitxml=build/junit.xml

# Processes of tests and commands share their byte code, also where the surroundings say that none is written: without it
# each one compiles all that it imports, a server for two seconds.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-full ci check quick times lint format hosts proto serve train meaning bench bench-checkouts graded \
  examples docs release clean

help:  ## Show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 18

setup: $(READY)  ## Make the virtual environment .venv with everything pinned

# The requirements are whole and pinned: pip need not resolve them, and a release of tomorrow can't change what is installed.
$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "spicegraph needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)  # without byte code: Python makes it of what is imported, half the time of setting up
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes \
	  --only-binary :all: --no-binary rouge-score -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: $(READY)  ## Score the two example systems: tables here; JSON and a report in demo-output/; the same from a server
	@mkdir -p demo-output
	@echo "== human: one caption of each image against its other captions"
	@$(BIN)/spicegraph score examples/coco/human.json --references examples/coco/captions_without_first.json \
	  --metrics coco -o demo-output/human.json
	@echo "== retrieval: the most similar caption of another image"
	@$(BIN)/spicegraph score examples/coco/retrieval.json --references examples/coco/captions.json \
	  --metrics coco -o demo-output/retrieval.json
	@echo "== what both get wrong, on the same references"
	@$(BIN)/spicegraph report examples/coco/human.json examples/coco/retrieval.json \
	  --references examples/coco/captions_without_first.json --categories examples/categories.toml \
	  -o demo-output/report.html
	@echo "== the scores of retrieval once more, from a server over gRPC"
	@$(BIN)/python tools/ask_server.py examples/coco/retrieval.json examples/coco/captions.json \
	  demo-output/retrieval.json
	@echo "The scores of every image are in demo-output/human.json and demo-output/retrieval.json;"
	@echo "open demo-output/report.html in a browser for the errors of both systems."

test: lint  ## Lint, and every test but the parts that only the full run has (tools/lanes.py): minutes
	$(PYTEST) tests

test-full: lint hosts  ## Every test: Ray, floods, clients built from nothing, the wheel, every page, each wing removed
	$(PYTEST) tests --full=all --hypothesis-profile=full
	$(BIN)/python tools/core_alone.py $(SHARED)
	for wing in wings/spicegraph_*; do $(BIN)/python tools/core_alone.py --without $${wing#wings/} -n auto -m "not slow" || exit 1; done

ci: lint  ## Lint, and the tests that the files changed since the merge base concern: what CI runs
	tests=$$($(BIN)/python tools/lanes.py) && $(PYTEST) $$tests
	if $(BIN)/python tools/lanes.py --hosts; then $(MAKE) --no-print-directory hosts; fi

times: $(READY)  ## Where the last run's time went: by folder beside tests/budgets.toml, and the slowest tests
	$(BIN)/python tools/times.py build/junit.xml

check: $(READY)  ## Style, types, layers and the quick tests, side by side: less than a minute on two idle cores
	@$(MAKE) --no-print-directory -j2 lint quick

quick: $(READY)
	$(BIN)/python -m pytest -q -n 2 -m "not model and not slow" --hypothesis-profile=quick \
	  -o faulthandler_timeout=120 --ignore=tests/e2e

lint: $(READY)  ## Style, formatting, types, the layers of the packages, and whether generated tables are fresh
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python tools/check_blocks.py
	$(BIN)/lint-imports
	$(BIN)/python tools/build_catalogue.py --check
	$(BIN)/python tools/house.py --check

hosts: .venv-hosts/.ready  ## Test the adapters against the tools themselves (Inspect, MLflow, Weave ...), in .venv-hosts
	.venv-hosts/bin/python -m pytest -c tests/hosts/pytest.ini tests/hosts

.venv-hosts/.ready: requirements/hosts.txt pyproject.toml
	$(PYTHON) -m venv .venv-hosts
	.venv-hosts/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes \
	  --only-binary :all: -r requirements/hosts.txt
	.venv-hosts/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation .
	touch $@

format: $(READY)  ## Format the code
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

proto: $(READY)  ## Generate the Python of the gRPC contract anew; git shows whether it was stale
	tools/proto.sh

serve: $(READY)  ## Start the gRPC server on this machine's loopback
	$(BIN)/spicegraph serve

train:  ## Train the caption pipeline anew (hours; see training/caption_pipeline.md)
	bash training/train.sh training/work

meaning:  ## Train SPICE-G's table of meanings anew (minutes; training/meaning.md): SILVER, CAPTIONS, RATED, GOLDEN, HELD_OUT, MINILM
	PYTHONPATH=parser:scorer:training bash training/meaning.sh

bench: $(READY)  ## What scoring costs, as one table of ratios; the other scripts in bench/ answer one question each
	@$(BIN)/python bench/table.py

bench-checkouts: $(READY)  ## Processor time and memory of this checkout against another: make bench-checkouts OLD=FOLDER
	@$(BIN)/python bench/checkouts.py $(OLD) .

graded: $(READY)  ## Measure SPICE-G and its verdicts again, with new weights: make graded HUMAN=FOLDER
	mkdir -p build
	$(BIN)/python training/graded_study.py $(HUMAN) > build/graded_study.txt
	$(BIN)/python training/verdicts.py $(HUMAN) > build/verdicts.txt
	$(BIN)/python training/graded_degenerates.py examples/coco > build/graded_degenerates.txt

examples: $(READY)  ## Rebuild examples/coco from the captions in the installed pycocoevalcap wheel
	$(BIN)/python tools/build_examples.py examples/coco

docs: $(READY)  ## Build the documentation site in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

release: $(READY)  ## Build wheel and source distribution in dist/, where all papers name the same version
	$(BIN)/python tools/release.py

clean:  ## Remove the environment, caches and demo output
	rm -rf $(VENV) .venv-hosts demo-output build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
