SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3 python3.13 python3.12 python3.11 python
BIN := .venv/bin
export PYTHONPATH := .:shared
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export SAM_CLI_TELEMETRY := 0

# $(call install,VENV,LOCK...): VENV holds what the last LOCK says; a copy of each lock inside VENV tells whether it does.
# A lock is the whole closure, so pip has nothing to resolve (--no-deps).
define install
if ! $(1)/bin/python -c 'import pip' 2>/dev/null; then \
  for python in $(PYTHON) none; do \
    if $$python -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then break; fi; \
  done; \
  if [ $$python = none ]; then \
    echo 'Octopus needs Python 3.11, 3.12 or 3.13 with venv on PATH (or: make PYTHON=/path/to/python3.13 ...).' >&2; exit 1; \
  fi; \
  echo "Creating $(1) with $$($$python --version)"; \
  $$python -m venv --clear $(1) || exit; \
fi; \
lock='$(lastword $(2))'; \
if ! cmp -s $$lock $(1)/$${lock##*/}; then \
  echo "Installing $$lock into $(1)"; \
  $(1)/bin/python -m pip install --quiet --require-hashes --no-deps --requirement $$lock && cp $(2) $(1)/; \
fi
endef

.PHONY: help
help:  ## List the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | sort | while IFS=$$'\t' read -r name text; do printf '%-14s %s\n' "$$name" "$$text"; done

.PHONY: setup
setup:  ## Create .venv with what the embedded stack needs.
	@$(call install,.venv,requirements/local.txt)

.PHONY: setup-dev
setup-dev:  ## The same, with the tools for tests, lint and types.
	@$(call install,.venv,requirements/local.txt requirements/dev.txt)

.PHONY: setup-sam
setup-sam:  ## Create .venv-sam with the SAM CLI and cfn-lint.
	@$(call install,.venv-sam,requirements/sam.txt)

.PHONY: run
run: setup  ## Start the whole stack on this machine; FRESH=1 forgets the data of earlier starts.
	@exec $(BIN)/python -m infra.local run $(if $(FRESH),--fresh)

.PHONY: demo
demo: setup  ## Drive the stack through all four memories and print what each contributed.
	@exec $(BIN)/python -m infra.local demo

.PHONY: test
test: setup-dev  ## Run the tests; ARGS='-k name' narrows them.
	$(BIN)/python -m pytest --ignore=tests/infra --numprocesses 2 --dist loadfile $(ARGS)

.PHONY: test-infra
test-infra: setup-dev sam-local  ## Run the tests of the stack for AWS, on the functions as built; ARGS narrows them.
	$(BIN)/python -m pytest tests/infra $(ARGS)

.PHONY: format
format: setup-dev  ## Rewrite the code in the one format, and fix what lint can fix.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: lint
lint: setup-dev  ## Check lint and format.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: types
types: setup-dev  ## Check the types of octopus, functions and infra.local.
	$(BIN)/mypy

.PHONY: sam-validate
sam-validate: setup-sam  ## Validate the stack's template.
	.venv-sam/bin/sam validate --lint --region us-east-1 --template template.yaml

.PHONY: sam-build
sam-build: setup-sam  ## Build the stack for Lambda, and print the unzipped size of each function; ARCHITECTURE=x86_64.
	.venv-sam/bin/sam build --parallel --parameter-overrides Architecture=$(or $(ARCHITECTURE),arm64)
	$(firstword $(PYTHON)) infra/build/sizes.py

LAMBDA_SOURCES := template.yaml $(shell find functions shared infra/build infra/migrations infra/*.yaml -type f -not -name '*.pyc')
.aws-sam/local/template.yaml: $(LAMBDA_SOURCES)
	@$(call install,.venv-sam,requirements/sam.txt)
	.venv-sam/bin/sam build --parallel --build-dir .aws-sam/local \
	  --parameter-overrides Architecture=$(subst aarch64,arm64,$(shell uname -m))

.PHONY: sam-local
sam-local: setup-sam .aws-sam/local/template.yaml  ## Build the stack for this machine's processor, if anything has changed.

.PHONY: invoke
invoke: setup-dev sam-local  ## Invoke a built function with an event, without Docker: F=EndSession E=events/session-ended.json
	@$(BIN)/python -m infra.local.invoke $(F) $(E)

.PHONY: check
check: lint types test demo sam-validate sam-build test-infra  ## Everything that CI runs.

.PHONY: costs
costs: setup-dev  ## Compute the tables of infra/costs.md from the prices and the traffic in infra/costs.toml.
	@$(BIN)/python -m infra.local.costs

.PHONY: openapi
openapi: setup-dev  ## Generate functions/api/openapi.json from the code of the API.
	@$(BIN)/python -m infra.local.openapi

.PHONY: bench-coldstart
bench-coldstart: setup-dev sam-local  ## How long each built function takes until it could serve, beside `import anthropic` alone.
	@$(BIN)/python -m tests.bench.coldstart

.PHONY: bench-ingest
bench-ingest: setup-dev  ## Ingestion beside the embedder alone, its memory, and what changed documents cost.
	@$(BIN)/python -m tests.bench.ingest

.PHONY: bench-context
bench-context: setup-dev  ## What assembling working memory costs, by the length of the conversation.
	@$(BIN)/python -m tests.bench.context

.PHONY: bench-procedures
bench-procedures: setup-dev  ## What it costs to match a message, by the number of procedures.
	@$(BIN)/python -m tests.bench.procedures

.PHONY: bench-cache
bench-cache: setup-dev  ## What the provider's prompt cache makes of each layout and pruning strategy.
	@$(BIN)/python -m tests.bench.cache

.PHONY: setup-bench
setup-bench:  ## Create .venv-bench with the stores that recall is compared with.
	@$(call install,.venv-bench,requirements/bench.txt)

.PHONY: bench-recall
bench-recall: setup-dev setup-bench  ## What recall finds, beside other stores: DATA=directory of LoCoMo and Cranfield.
	@$(BIN)/python -m tests.bench.recall $(DATA) --peers .venv-bench/bin/python $(ARGS)
	@$(BIN)/python -m tests.bench.recall_prompt $(DATA)

.PHONY: bench-latency
bench-latency: setup-dev setup-bench  ## How long the read phase takes by the size of the database: ARGS='--size 1000000 --keep DIR'.
	@$(BIN)/python -m tests.bench.latency --peers .venv-bench/bin/python $(ARGS)

.PHONY: calibrate
calibrate: setup-dev  ## Fit what a cosine of the shipped embedder is worth: DATA as for bench-recall.
	@$(BIN)/python -m tests.bench.calibrate $(DATA)

.PHONY: lock
lock:  ## Resolve requirements/*.in anew into exact, hashed locks.
	@[ -x .venv-lock/bin/uv ] || { $(firstword $(PYTHON)) -m venv .venv-lock && .venv-lock/bin/pip install --quiet uv; }
	@set -e; compile() { \
	  .venv-lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command 'make lock' "$$@"; }; \
	compile requirements/runtime.in --output-file shared/requirements.txt; \
	compile requirements/local.in --constraint shared/requirements.txt --output-file requirements/local.txt; \
	compile requirements/dev.in --constraint requirements/local.txt --output-file requirements/dev.txt; \
	compile requirements/sam.in --output-file requirements/sam.txt; \
	compile requirements/bench.in --output-file requirements/bench.txt
