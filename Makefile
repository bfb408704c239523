# The commands of this repository. Nothing has to be installed before: a virtual environment of its own holds the tools.
#
#   make demo    [TORCH=2.6.0] [PYTHON=3.10]   build both wheels, install them, train two CUDA programs on real data
#   make wheels  [TORCH=2.6.0] [PYTHON=3.10]   leave wheels/torch-*.whl and wheels/mxmaca-*.whl
#   make image   [TORCH=2.6.0] [BASE=debian:12 | BOOTSTRAP=bookworm]   leave wheels/mxc500-*.container.xz
#   make test    [ARGS='-k name']              build what is missing, lint, run all tests for all releases
#   make bench   [TORCH=2.6.0] [PYTHON=3.10]   run the benchmarks
#   make conformity [TORCH=2.6.0] [PYTHON=3.10] [ARGS='--resume --jobs 2']   run upstream's own tests and a sweep over all
#                                              operators (hours); docs/conformity.md says more
#   make lint | make format                    the linters alone; with what they can rewrite rewritten
#   make clean                                 remove what was made in this folder; the cache stays
#
# FROM=PATH takes upstream's wheels from a file or folder instead of a download.

SHELL := /bin/sh
HOST_PYTHON := $(shell command -v python3 || command -v python)
TOOLS := .venv/bin/python
FACTORY := $(TOOLS) -m build_scripts
# A Python given by name builds for that Python; the tools run with the one that is there.
CHOICE = $(if $(TORCH),--torch $(TORCH)) $(if $(PYTHON),--python $(PYTHON)) $(if $(FROM),--from $(FROM))

.PHONY: demo wheels image test bench conformity lint format index verify list clean
.DEFAULT_GOAL := wheels

.venv/.tools: requirements.txt
	@test -n "$(HOST_PYTHON)" || { echo "error: no python3 on PATH; install Python 3.8 or later" >&2; exit 1; }
	@test -x $(TOOLS) || "$(HOST_PYTHON)" -m venv .venv || { echo "error: cannot make .venv; install Python's venv module" >&2; exit 1; }
	@echo "Installing the factory's tools …" >&2
	@$(TOOLS) -m pip --disable-pip-version-check install --quiet -r requirements.txt
	@touch $@

.venv/.image: .venv/.tools requirements-image.txt
	@$(TOOLS) -m pip --disable-pip-version-check install --quiet -r requirements-image.txt
	@touch $@

.venv/.dev: .venv/.tools requirements-dev.txt requirements-image.txt
	@echo "Installing the test and lint tools …" >&2
	@$(TOOLS) -m pip --disable-pip-version-check install --quiet -r requirements-dev.txt
	@touch $@

demo: .venv/.tools
	@$(FACTORY) demo $(CHOICE)

wheels: .venv/.tools
	@$(FACTORY) build $(CHOICE)

image: .venv/.image
	@$(FACTORY) image $(if $(TORCH),--torch $(TORCH)) $(if $(BASE),--base $(BASE)) $(if $(BOOTSTRAP),--bootstrap $(BOOTSTRAP))

index: .venv/.tools
	@$(FACTORY) index

verify: .venv/.tools
	@$(FACTORY) verify wheels/torch-*.whl

list: .venv/.tools
	@$(FACTORY) list

test: .venv/.dev
	@$(FACTORY) test $(if $(TORCH),--torch $(TORCH)) $(if $(FROM),--from $(FROM)) -- $(ARGS)

bench: .venv/.tools
	@$(FACTORY) bench $(CHOICE)

conformity: .venv/.tools
	@$(FACTORY) conformity $(CHOICE) $(ARGS)

lint: .venv/.dev
	@$(FACTORY) lint

format: .venv/.dev
	@$(FACTORY) lint --fix

clean:
	rm -rf .venv demo-output wheels/simple wheels/dependencies wheels/*.whl wheels/mxc500-* wheels/.*.part
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
