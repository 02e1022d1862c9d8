# What `sam build` calls, from the repository's root: one target for each function and layer of template.yaml.
# SAM passes ARTIFACTS_DIR, and chooses the folder beside this file by the parameter Architecture.
candidates := python3.13 $(wildcard $(HOME)/.pyenv/versions/3.13.*/bin/python3.13)
PYTHON := $(shell for python in $(candidates); do $$python -c '' 2>/dev/null && echo $$python && break; done)
ifeq ($(PYTHON),)
$(error Lambda runs Python 3.13, and the bytecode in the packages must be its own: put python3.13 on the PATH, or install it with pyenv)
endif

PACKAGE = $(PYTHON) -B infra/build/package.py --platform $(PLATFORM) --into "$(ARTIFACTS_DIR)"

build-SharedLayer: ; $(PACKAGE) layer
build-ChatFunction: ; $(PACKAGE) function chat
build-ApiFunction: ; $(PACKAGE) function api
build-IngestDocumentFunction: ; $(PACKAGE) function ingest_document
build-RemoveDocumentFunction: ; $(PACKAGE) function remove_document
build-EndSessionFunction: ; $(PACKAGE) function end_session
build-SweepFunction: ; $(PACKAGE) function sweep
build-ReembedFunction: ; $(PACKAGE) function reembed
build-MigrateFunction: ; $(PACKAGE) function migrate
