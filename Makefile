# The commands of this repository. Nothing has to be installed before: a virtual environment of its own holds the tools.
#
#   make demo    [TORCH=2.6.0] [PYTHON=3.10]   build the wheels, install them, train two CUDA programs on real data
#   make wheels  [TORCH=2.6.0] [PYTHON=3.10]   leave wheels/{torch,…,triton,mxmaca}-*.whl; FAST=off: without what is
#                                              only for speed (FAST=ALLOCATOR,COPIES: with these parts);
#                                              ARCH=aarch64: for that processor, also in `make bundle`
#   make image   [TORCH=2.6.0] [BASE=debian:12 | BOOTSTRAP=bookworm]   leave wheels/mxc500-*.container.xz; builds the
#                                              wheels that are missing
#   make bundle  [TORCH=2.6.0] [PYTHON=3.10]   leave wheels/maca-pytorch*.tar.xz: all wheels with an installer that
#                                              needs no network
#   make test    [ARGS='-k name']              build what is missing, lint, run all tests
#   make bench   [TORCH=2.6.0] [PYTHON=3.10]   run the benchmarks
#   make conformity [TORCH=2.6.0] [PYTHON=3.10] [ARGS='--resume --jobs 2']   run upstream's own tests and a sweep over
#                                              all operators (hours); docs/conformity.md says more
#   make lint | make format                    the linters alone; with what they can rewrite rewritten
#   make clean                                 remove what was made in this folder; the cache stays
#
# SOURCES='apex=PATH' builds apex from its sources, for wheels, bundle and test; docs/releases.md says more.
# FROM=PATH takes upstream's wheels from a file or folder instead of a download. ARGS is divided into words as in a
# shell. .venv is the Makefile's own: build_scripts/tools.py makes it anew where it is not whole.

SHELL := /bin/sh
HOST_PYTHON := $(shell command -v python3 || command -v python)
FACTORY := .venv/bin/python -m build_scripts

# What the user gives is data. Neither make nor the shell reads it again: recipes take it from the environment, in
# quotes.
GIVEN := HOST_PYTHON TORCH PYTHON FROM ARGS BASE BOOTSTRAP FAST ARCH SOURCES
$(foreach name,$(GIVEN),$(if $(value $(name)),$(eval override $(name) := $$(value $(name)))$(eval export $(name))))
# A Python given by name builds for that Python; the tools run with the one that is there.
RELEASE := $${TORCH:+--torch="$$TORCH"}
SOURCE := $${FROM:+--from="$$FROM"}
CHOICE := $(RELEASE) $${PYTHON:+--python="$$PYTHON"} $${ARCH:+--arch="$$ARCH"} $(SOURCE)
SOURCES_GIVEN := $${SOURCES:+--source="$$SOURCES"}
WORDS := $${ARGS:+--args "$$ARGS"}

.PHONY: demo wheels image bundle test bench conformity lint format index verify list clean always
.DEFAULT_GOAL := wheels

.venv/.tools .venv/.image .venv/.dev: always
	@test -n "$$HOST_PYTHON" || { echo "error: no python3 on PATH; install Python 3.8 or later" >&2; exit 1; }
	@"$$HOST_PYTHON" build_scripts/tools.py $(@:.venv/.%=%)

demo: .venv/.tools
	@$(FACTORY) demo $(CHOICE)

wheels: .venv/.tools
	@$(FACTORY) build $(CHOICE) $(SOURCES_GIVEN) $${FAST:+--fast="$$FAST"}

image: .venv/.image
	@$(FACTORY) image $(RELEASE) $(SOURCE) $${BASE:+--base="$$BASE"} $${BOOTSTRAP:+--bootstrap="$$BOOTSTRAP"}

bundle: .venv/.image
	@$(FACTORY) bundle $(CHOICE) $(SOURCES_GIVEN)

index: .venv/.tools
	@$(FACTORY) index

verify: .venv/.tools
	@$(FACTORY) verify wheels/torch*.whl wheels/triton-*.whl $(wildcard wheels/flash_attn-*.whl wheels/apex-*.whl)

list: .venv/.tools
	@$(FACTORY) list

test: .venv/.dev
	@$(FACTORY) test $(RELEASE) $(SOURCE) $(SOURCES_GIVEN) -- $(WORDS)

bench: .venv/.tools
	@$(FACTORY) bench $(CHOICE)

conformity: .venv/.tools
	@$(FACTORY) conformity $(CHOICE) $(WORDS)

lint: .venv/.dev
	@$(FACTORY) lint

format: .venv/.dev
	@$(FACTORY) lint --fix

clean:
	@rm -f .venv/.tools .venv/.image .venv/.dev  # first: what is half removed must not pass for whole
	rm -rf .venv demo-output wheels/simple wheels/dependencies wheels/*.whl wheels/*.metadata wheels/.*.part
	rm -rf wheels/mxc500-* wheels/maca-pytorch*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
