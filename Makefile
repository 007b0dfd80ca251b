# make run      the dashboard at http://localhost:8501
# make test     the whole suite, browser tests included; ARGS="-k geometry" for a part of it
# make lint     ruff and mypy
# make bench    the figures, beside those of other packages
# make zoo      hooks on every module of every classifier; ARGS="resnet18 vit_b_16" for some
# make hostile  random little nets, hooked, against PyTorch alone; ARGS="3000" for more of them
# make screenshots   the pictures of the README, taken anew
# make compat TORCH=2.6.0   the unit tests with that torch and its torchvision, in .compat/2.6.0:
#                     several gigabytes; ARGS as for make test
#
# PYTHON=python3.12   the interpreter the virtual environment is made with
# VENV=/path/to/env   an environment of yours: what it has stays where it is new enough,
#                     so an installed torch is kept

VENV ?= .venv
PYTHON ?=
ARGS ?=
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check install
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
# Each is run, not only looked up: a version manager's shim may stand for nothing.
FIND_PYTHON = for python in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	$$python -c '$(NEW_ENOUGH)' 2>/dev/null && { echo $$python; break; }; done
FIND_CHROMIUM = for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	command -v $$name && break; done >/dev/null

# torchvision 0.(X + 15).Z belongs to torch 2.X.Z.
TORCH_PARTS = $(subst ., ,$(TORCH))
TORCHVISION = 0.$$((15 + $(word 2,$(TORCH_PARTS)))).$(word 3,$(TORCH_PARTS))
COMPAT = .compat/$(TORCH)

.PHONY: help run test lint bench zoo hostile screenshots compat chromium

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

run: $(VENV)/.hookscope-run
	$(RUN) -m streamlit run app.py

test: $(VENV)/.hookscope-dev chromium
	$(RUN) -m pytest $(ARGS)

lint: $(VENV)/.hookscope-dev
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy

bench: $(VENV)/.hookscope-dev
	PYTHONPATH=. $(RUN) tests/bench/bench.py $(ARGS)

zoo: $(VENV)/.hookscope-dev
	PYTHONPATH=. $(RUN) tests/bench/zoo.py $(ARGS)

hostile: $(VENV)/.hookscope-dev
	PYTHONPATH=. $(RUN) -m tests.hostile $(ARGS)

screenshots: $(VENV)/.hookscope-dev chromium
	$(RUN) -m tests.browser.screenshots

compat:
	@echo "$(TORCH)" | grep -Eqx '2\.([6-9]|[1-9][0-9]+)\.[0-9]+' || \
		{ echo "Which torch? Give a version from 2.6.0 on: make compat TORCH=2.6.0" >&2; exit 1; }
	@$(MAKE) --no-print-directory VENV=$(COMPAT) $(COMPAT)/bin/python
	$(COMPAT)/bin/python -m pip --disable-pip-version-check install -r requirements-dev.txt \
		torch==$(TORCH) torchvision==$(TORCHVISION)
	$(COMPAT)/bin/python -m pytest tests/unit $(ARGS)

$(VENV)/bin/python:
	@python="$(or $(PYTHON),$$($(FIND_PYTHON)))"; \
	if [ -z "$$python" ] || ! $$python -c '$(NEW_ENOUGH)'; then \
		echo "Hookscope needs Python 3.11 or newer: $${python:-what is on PATH} is not." \
			"Install it, or name it: make run PYTHON=/path/to/python3.12" >&2; exit 1; fi; \
	echo "making $(VENV) with $$python"; \
	$$python -m venv $(VENV) || { rm -f $@; \
		echo "$$python makes no virtual environment; on Debian: apt-get install python3-venv" >&2; \
		exit 1; }

$(VENV)/.hookscope-run: requirements.txt | $(VENV)/bin/python
	@$(RUN) -c '$(NEW_ENOUGH)' || \
		{ echo "Hookscope needs Python 3.11 or newer; $(VENV) has an older one." >&2; exit 1; }
	$(PIP) -r requirements.txt
	@touch $@

$(VENV)/.hookscope-dev: requirements-dev.txt $(VENV)/.hookscope-run
	$(PIP) -r requirements-dev.txt
	@touch $@

# Browser tests need a Chromium; without one they are skipped, with the reason in the summary.
chromium:
	@if [ -n "$$CHROMIUM" ] || { $(FIND_CHROMIUM); }; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		install="apt-get install -y --no-install-recommends chromium"; \
		export DEBIAN_FRONTEND=noninteractive; \
		$$install || { apt-get update && $$install; } && exit 0; fi; \
	echo "No Chromium found: the browser tests will be skipped. Install one (on Debian, as root:" \
		"apt-get install chromium) or name it: CHROMIUM=/path/to/chromium make test" >&2
