# A fresh machine needs python3 (3.11 to 3.14, with venv) and make; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-slow check format lock bench bench-claim wheel clean gateway-report

demo: $(READY)
	@$(BIN)/fairlease demo $(ARGS)

test: $(READY)
	@$(BIN)/pytest -n auto --dist worksteal $(ARGS)

test-slow: $(READY)
	@$(BIN)/pytest -m slow --timeout 1200 $(ARGS)

check: $(READY)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tests/sizes.py

format: $(READY)
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: bench-claim

bench-claim: $(READY)
	@$(BIN)/python -m bench.claim $(ARGS)

# Every recorded answer of a real PostgREST against the local gateway's.
gateway-report: $(READY)
	@$(BIN)/python -m tests.gateway.report $(ARGS)

# One lock for every platform and Python that we support; needs uv.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --all-extras --group dev pyproject.toml -o requirements.lock

wheel: $(READY)
	@$(BIN)/python -m hatchling build -t wheel -d dist

clean:
	rm -rf $(VENV) .fairlease dist out

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fairlease needs Python 3.11 or later: make PYTHON=python3.12 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing locked dependencies into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
