# One word for each chore; each sets up what it needs on a machine that has Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
GOLDEN ?= ../shared/golden
CLUSTER ?= demo
ONLY ?=
ARGS ?=
OSV ?=
FAULTS ?= 40
SEED ?= 1
# An installation as deploy/ makes it, as far as Django's deployment check looks at one.
PRODUCTION := DESCHEDUI_BEHIND_HTTPS=1 DESCHEDUI_PUBLIC_URL=https://deschedui.example \
  DESCHEDUI_ALLOWED_HOSTS=deschedui.example DESCHEDUI_TRUSTED_ORIGINS=https://deschedui.example \
  DESCHEDUI_DATABASE_URL=sqlite:///var/check/deschedui.sqlite3

.PHONY: demo demo-check audit run test test-postgresql check bench campaign golden lock format help
help:
	@echo "make demo [CLUSTER=kube] | demo-check | run | test | check | audit [OSV=folder] | bench [ONLY=name] | campaign [FAULTS=40 SEED=1] | golden [GOLDEN=folder] | format | lock"

$(VENV)/.runtime: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("deschedui needs Python 3.11 or newer (make PYTHON=python3.11 …)" if sys.version_info < (3, 11) else 0)'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "installing what deschedui needs into $(VENV)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.dev: requirements-dev.lock | $(VENV)/.runtime
	@echo "installing what its tests and checks need into $(VENV)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

demo: $(VENV)/.runtime
	@$(PY) -m deschedui.demo.launch --cluster $(CLUSTER)

demo-check: $(VENV)/.runtime
	@$(PY) -m deschedui.demo.check --cluster $(CLUSTER)

run: $(VENV)/.runtime
	@$(PY) manage.py serve

test: $(VENV)/.dev
	@$(PY) -m pytest $(ARGS)

# What the database has to hold, on PostgreSQL; DESCHEDUI_TEST_DATABASE_URL names a server, else one is started.
test-postgresql: $(VENV)/.dev
	@$(PY) -m tests.real.on_postgresql tests/domain tests/doors tests/api tests/fuzz tests/web tests/access $(ARGS)

check: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	DESCHEDUI_DEMO=1 DESCHEDUI_DEBUG=1 $(PY) manage.py makemigrations --check --dry-run
	@echo manage.py check --deploy --fail-level WARNING
	@$(PRODUCTION) DESCHEDUI_SECRET_KEY=$$($(PY) -c 'import secrets; print(secrets.token_urlsafe(48))') \
	  $(PY) manage.py check --deploy --fail-level WARNING
	$(VENV)/bin/djlint templates --lint --quiet

# Known weaknesses of what the lock file pins, by pip-audit; without a network from OSV's advisories: OSV=<folder or zip>.
audit: $(VENV)/.dev
	@$(PY) -m tests.audit $(if $(OSV),--osv $(OSV)) $(ARGS)

bench: $(VENV)/.dev
	@ONLY=$(ONLY) $(PY) -m tests.bench

# The whole product at work, harmed so many times; then three accounts of what happened are compared.
campaign: $(VENV)/.dev
	@$(PY) -m tests.campaign --faults $(FAULTS) --seed $(SEED)

golden: $(VENV)/.dev
	@$(PY) -m tests.golden.compare $(GOLDEN)

format: $(VENV)/.dev
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

# Hash pins without addresses: an index URL in a lock file would bind it to one registry.
lock: $(VENV)/.dev
	$(VENV)/bin/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -q -o requirements.lock
	$(VENV)/bin/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -q -o requirements-dev.lock
