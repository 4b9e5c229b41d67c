# `make help` lists what can be done. Everything is set up when it is first needed.

PYTHON ?= python3
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help

ENVIRONMENT := .venv/bin
SAM := .venv-sam/bin/sam
# SAM CLI reports usage and looks for newer versions unless told not to.
export SAM_CLI_TELEMETRY = 0

# Many processes import the same modules: they are compiled by the first one alone, whatever this machine is told.
export PYTHONDONTWRITEBYTECODE =

# The interpreter must be one that Lambda has, and one that every pinned package has wheels for.
PYTHON_VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
ifeq ($(filter 3.11 3.12 3.13,$(PYTHON_VERSION)),)
ifneq ($(filter-out help clean,$(or $(MAKECMDGOALS),help)),)
$(error Relaunch needs Python 3.11, 3.12 or 3.13, but "$(PYTHON)" is \
	$(if $(PYTHON_VERSION),Python $(PYTHON_VERSION),not there). Name one: make PYTHON=python3.11 $(MAKECMDGOALS))
endif
endif
INTERPRETER := $(shell $(PYTHON) -c 'import sys; print(sys.executable)' 2>/dev/null)
# Lambda runs the bytecode that the build compiles: the Runtime is that of the interpreter at hand.
RUNTIME := python$(PYTHON_VERSION)
ARCHITECTURE ?= x86_64

INSTALL := $(PYTHON) requirements/build_environment.py

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ── What is installed ────────────────────────────────────────────────────────────────────────────────────────────────
.PHONY: setup environment environment-sam environment-emulator environment-workflows environment-checkov environment-bench environment-mutate environment-browser requirements
setup: environment environment-sam environment-emulator ## Install everything (the other targets do it when needed)

environment:
	@$(INSTALL) .venv --requirement requirements/dev.txt --project

environment-sam:
	@$(INSTALL) .venv-sam --requirement requirements/sam.txt

environment-emulator:
	@$(INSTALL) .venv-emulator --requirement requirements/emulator.txt

environment-workflows:
	@$(INSTALL) .venv-workflows --requirement requirements/workflows.txt

environment-checkov:
	@$(INSTALL) .venv-checkov --requirement requirements/checkov.txt

environment-bench:
	@$(INSTALL) .venv-bench --requirement requirements/bench.txt

environment-mutate:
	@$(INSTALL) .venv-mutate --requirement requirements/dev.txt --requirement requirements/mutate.txt --project

environment-browser:
	@$(INSTALL) .venv-browser --requirement requirements/dev.txt --requirement requirements/browser.txt --project

requirements: ## Compile the lists of packages to versions and hashes; UPGRADE=--upgrade takes the newest that fit
	@$(INSTALL) .venv-requirements --requirement requirements/compile.txt
	@.venv-requirements/bin/python requirements/compile_lists.py $(UPGRADE)

# ── Known vulnerabilities ────────────────────────────────────────────────────────────────────────────────────────────
.PHONY: audit
audit: ## Look all packages up in the advisories of PyPI; says so where they cannot be reached
	@! $(PYTHON) requirements/audit.py --is-reachable || { \
		$(INSTALL) .venv-audit --requirement requirements/audit.txt && .venv-audit/bin/python requirements/audit.py; }

# ── The application ──────────────────────────────────────────────────────────────────────────────────────────────────
.PHONY: build dist validate checkov deploy
build: environment-sam ## Build the application for the Runtime of the interpreter at hand
	@PYTHONPATH=local $(PYTHON) -m relaunch_local.stack.build --sam $(SAM) \
		--interpreter "$(INTERPRETER)" --runtime $(RUNTIME) --architecture $(ARCHITECTURE)

# The same content makes the same archive: no time, no owner, no order of the disk.
dist: environment build ## What a release consists of: the command, the built application, the bill of its materials
	@rm -rf dist && mkdir dist
	@$(ENVIRONMENT)/hatchling build -t wheel -d dist
	@tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C .aws-sam/build -cf - . | \
		gzip --no-name > dist/relaunch-application-$(RUNTIME)-$(ARCHITECTURE).tar.gz
	@cp .aws-sam/build/DependenciesLayer/sbom.cdx.json dist/relaunch-application-$(RUNTIME)-$(ARCHITECTURE).cdx.json

# `sam validate --lint` asks the same cfn-lint, of one template, which a process of its own makes ready for.
validate: environment-sam ## Check the templates with cfn-lint, as `sam validate --lint` does
	@.venv-sam/bin/cfn-lint template.yaml infrastructure/*.yaml examples/edge/template.yaml

# Not among the gates of .ci/run: its environment is as large as all others together.
checkov: environment-checkov ## Look for what is insecure in the templates; .checkov.yaml says what is left out, and why
	@.venv-checkov/bin/checkov --config-file .checkov.yaml --file template.yaml infrastructure/*.yaml examples/edge/template.yaml

deploy: setup ## Deploy to AWS as `relaunch deploy` does, which says more; PARAMETERS="ClusterName=... MaxMachines=..."
	@$(ENVIRONMENT)/relaunch deploy $(PARAMETERS)

# ── Checks ───────────────────────────────────────────────────────────────────────────────────────────────────────────
.PHONY: lint workflows check unit test
lint: environment validate workflows ## Format, lint, types, import contracts, templates, workflows
	@$(ENVIRONMENT)/ruff format --check --quiet . || { echo "ruff format would change files: run it"; exit 1; }
	@$(ENVIRONMENT)/ruff check --quiet .
	@$(ENVIRONMENT)/mypy
	@$(ENVIRONMENT)/lint-imports

# GITHUB_TOKEN would let zizmor ask GitHub: without one it says the same everywhere.
workflows: environment-workflows ## Check action.yml and the workflows by their schemas and for what attackers use
	@.venv-workflows/bin/check-jsonschema --quiet --builtin-schema vendor.github-actions action.yml
	@.venv-workflows/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml examples/workflows/*.yml
	@.venv-workflows/bin/zizmor --offline --quiet --persona pedantic action.yml .github/workflows examples/workflows

.PHONY: style-list
style-list: environment ## Write down that fewer refused words are left; more are refused
	@PYTHONPATH=tests $(ENVIRONMENT)/python -m architecture.code_style

# Tests share no state but what a file's own fixtures make, so files run side by side: one per processor, and two more for
# the time that some wait. xdist would begin with the files of most tests: tests/conftest.py knows which take longest.
PROCESSORS := $(shell $(PYTHON) -c 'import os; print(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())' 2>/dev/null)
WORKERS = $(shell expr $(PROCESSORS) + 2)
SIDE_BY_SIDE := --dist loadfile --no-loadscope-reorder

# Side by side, for mypy uses one processor and waits for nothing.
check: environment ## The lint and the unit tests but those that take seconds each (a minute and a half on two processors)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint unit

unit: environment
	@$(ENVIRONMENT)/pytest -q -n $(PROCESSORS) $(SIDE_BY_SIDE) -m "not slow" tests/unit tests/architecture

# core/ decides: its own tests take every branch of it, and a branch that none can take is deleted.
# Only they are measured: it would double the time of the rest. None of them waits, and each worker collects all of them.
test: setup build ## All tests, also those that deploy into the emulator (four and a half minutes on two processors)
	@$(ENVIRONMENT)/pytest -q -n $(PROCESSORS) $(SIDE_BY_SIDE) tests/unit/core --cov
	@$(ENVIRONMENT)/pytest -q -n $(WORKERS) $(SIDE_BY_SIDE) --ignore=tests/unit/core -m "not benchmark and not browser and not kubernetes and not multi_node and not neighbours and not planted and not pytorch and not simulated and not trainers" --durations=20 --durations-min=8

.PHONY: test-simulation
test-simulation: environment ## The rest of the simulation: kills at every step, load, recovery, releases beside each other (three quarters of a minute)
	@$(ENVIRONMENT)/pytest -q -n $(PROCESSORS) $(SIDE_BY_SIDE) -m "simulated and not planted" tests/simulation

# `.ci/run` has one interpreter. A Python may change what a library reads of our code: 3.12 did with enumerations.
.PHONY: test-python
test-python: ## The unit tests under another interpreter: PYTHON=python3.13 (three minutes)
	@$(INSTALL) .venv-python --requirement requirements/dev.txt --project
	@.venv-python/bin/pytest -q -n $(PROCESSORS) $(SIDE_BY_SIDE) tests/unit

# Nothing installs Chromium here: it needs root, and is the command `chromium` of Debian's package of that name.
.PHONY: test-browser dashboard-pictures
test-browser: environment-browser environment-emulator build ## In Chromium, which must be installed: a page attacks the local world, and `relaunch dashboard` is used (a minute)
	@.venv-browser/bin/pytest -q -m browser tests/browser

dashboard-pictures: environment-browser ## Draw `relaunch dashboard` in Chromium: docs/dashboard-*.png
	@DASHBOARD_PICTURES=docs .venv-browser/bin/pytest -q -m browser tests/browser/test_dashboard_pictures.py

.PHONY: test-neighbours
test-neighbours: environment environment-emulator build ## Four stacks in one account, as they are deployed: no role of one reaches another (four minutes)
	@$(ENVIRONMENT)/pytest -q -m neighbours tests/real

.PHONY: test-pytorch
test-pytorch: ## The training of examples/pytorch on CPU, interrupted and resumed (installs five gigabytes, once)
	@$(INSTALL) .venv-pytorch --requirement requirements/dev.txt --requirement requirements/pytorch.txt --project
	@.venv-pytorch/bin/pytest -q -m pytorch tests/functional/examples

.PHONY: test-trainers
test-trainers: ## The callbacks for Hugging Face Trainer and PyTorch Lightning on CPU, interrupted and resumed (installs five gigabytes, once)
	@$(INSTALL) .venv-trainers --requirement requirements/dev.txt --requirement requirements/trainers.txt --project
	@.venv-trainers/bin/pytest -q -m trainers tests/functional/examples

.PHONY: test-multi-node
test-multi-node: ## examples/ddp and examples/fsdp over three machines on loopback, by torchrun, with the environment of test-trainers (25 minutes at a load of 20 on two processors)
	@$(INSTALL) .venv-trainers --requirement requirements/dev.txt --requirement requirements/trainers.txt --project
	@.venv-trainers/bin/pytest -q -m multi_node tests/functional/examples

.PHONY: test-demo-nodes
test-demo-nodes: setup build ## `make demo NODES=3` until Ctrl-C, then again to its end, and whether what it shows is true (eight minutes at a load of 19 on two processors)
	@$(INSTALL) .venv-trainers --requirement requirements/dev.txt --requirement requirements/trainers.txt --project
	@.venv-trainers/bin/pytest -q -m multi_node tests/real

# The programs are those of $KUBEBUILDER_ASSETS; else Kubernetes 1.20.2 is built from Debian's source package, once.
.PHONY: test-kubernetes kubernetes-programs
test-kubernetes: environment kubernetes-programs ## A real API server, controllers and scheduler on loopback (about five minutes)
	@$(ENVIRONMENT)/pytest -q -m kubernetes tests/control_plane

kubernetes-programs: environment
	@PYTHONPATH=layers/relaunch:local $(ENVIRONMENT)/python -m relaunch_local.control_plane.debian_build

.PHONY: record-items
record-items: environment ## Record what this version stores and sends, for later ones to read (five minutes)
	@PYTHONPATH=layers/relaunch:local $(ENVIRONMENT)/python tests/stored/record.py \
		tests/stored/$$($(ENVIRONMENT)/hatchling version)/items.json.gz

# ── Everything fails ─────────────────────────────────────────────────────────────────────────────────────────────────
SEEDS ?= 2000
.PHONY: simulate
simulate: environment ## The whole application while everything fails, SEEDS=2000 times
	@$(ENVIRONMENT)/python -m relaunch_local.simulation --seeds $(SEEDS)

STATUS_JOBS ?= 20000
.PHONY: commit-statuses
commit-statuses: environment ## Statuses of STATUS_JOBS=20000 jobs at a GitHub that fails and limits, and how many requests they took
	@PYTHONPATH=tests $(ENVIRONMENT)/python tests/stories/test_commit_statuses.py $(STATUS_JOBS)

OUTAGE_SEEDS ?= 6
.PHONY: outages
outages: environment ## What an outage of each service costs, OUTAGE_SEEDS=6 for each of 44 rows
	@$(ENVIRONMENT)/python -m relaunch_local.simulation.outage_table --seeds $(OUTAGE_SEEDS)

.PHONY: simulated-areas
simulated-areas: environment ## The same, and docs/simulated-areas.md, which names the use cases and effects that the seeds enter
	@$(ENVIRONMENT)/python -m relaunch_local.simulation --seeds $(SEEDS) --areas docs/simulated-areas.md

.PHONY: test-planted-bugs
test-planted-bugs: environment ## Every planted bug, also those beyond one of each invariant, and every kill of a function (minutes)
	@$(ENVIRONMENT)/pytest -q -n $(WORKERS) tests/simulation/test_planted_bugs.py tests/simulation/test_crash_at_every_step.py

.PHONY: planted-bugs
planted-bugs: environment ## Look for the seeds that find the planted bugs, after the simulation draws other numbers
	@PYTHONPATH=layers/relaunch:local:functions:tests $(ENVIRONMENT)/python tests/simulation/finding.py

# A restructuring changes no trace, but for the words of simulation/renames.toml.
BASE ?= main
.PHONY: compare-traces
compare-traces: environment ## Whether 500 seeds have the traces that they had at BASE=main
	@$(ENVIRONMENT)/python -m relaunch_local.simulation.compare $(BASE)

EVENTS ?= 10000
.PHONY: load
load: environment ## EVENTS=10000 at once against AWS's limits; LOAD="--warm", "--fleet" or "--machine g4dn.xlarge" for another load
	@$(ENVIRONMENT)/python -m relaunch_local.simulation.load --events $(EVENTS) $(LOAD)

ATTEMPTS ?= 5000
.PHONY: attack
attack: environment environment-emulator ## What strangers, other teams and web pages may try, and what misbehaved; CORPUS=folder adds its files
	@$(ENVIRONMENT)/python -m relaunch_local.attack --attempts $(ATTEMPTS) $(if $(CORPUS),--corpus "$(CORPUS)")

# ── Errors are planted ───────────────────────────────────────────────────────────────────────────────────────────────
.PHONY: mutate
mutate: environment-mutate ## Plant errors in the core, count what the tests find; MODULES="selection launches" narrows
	@nice .venv-mutate/bin/python tests/mutation/mutate.py $(MODULES)

MUTANTS ?= 300
DRAW ?= 1
.PHONY: mutate-simulation
mutate-simulation: environment-mutate ## Plant MUTANTS=300 errors that DRAW=1 draws, count what the simulation alone finds
	@nice .venv-mutate/bin/python tests/mutation/simulated --mutants $(MUTANTS) --draw $(DRAW) --seeds $(SEEDS)

# ── On this machine ──────────────────────────────────────────────────────────────────────────────────────────────────
.PHONY: apart apart-ack apart-ecs
apart: apart-ack apart-ecs ## The demo on ACK without the code for ECS, and that on ECS without the code for Kubernetes

apart-ack apart-ecs: apart-%: setup build
	@$(ENVIRONMENT)/python -m relaunch_local.demo.apart $*

.PHONY: demo demo-picture local bench bench-peers bench-kubernetes policy policy-thresholds kubernetes-schemas catalogue clean
TARGET ?= ecs
NODES ?= 1
demo: setup build ## The whole story on this machine, with no account; TARGET=ack or TARGET=acs on a cluster of Alibaba Cloud; NODES=3 a training over three machines, by real torchrun (Linux; installs five gigabytes, once)
ifneq ($(filter-out 1,$(NODES)),)
	@$(INSTALL) .venv-trainers --requirement requirements/dev.txt --requirement requirements/trainers.txt --project
	@.venv-trainers/bin/python -m relaunch_local.demo --target $(TARGET) --nodes $(NODES)
else
	@$(ENVIRONMENT)/python -m relaunch_local.demo --target $(TARGET)
endif

demo-picture: setup build ## Run the demo and draw it: docs/demo.svg, the picture of README.md
	@$(ENVIRONMENT)/python -m relaunch_local.demo --picture docs/demo.svg

local: setup build ## A local world to try things in, until Ctrl-C; LOCAL=--empty is an account to try `relaunch deploy` in
	@$(ENVIRONMENT)/python -m relaunch_local up $(LOCAL)

bench-peers: environment ## Choosing beside SkyPilot's catalogue on one table (installs half a gigabyte, once)
	@$(INSTALL) .venv-peers --requirement requirements/bench-peers.txt
	@$(ENVIRONMENT)/python -m benchmarks peers

bench-kubernetes: environment kubernetes-programs ## 200 Jobs on a real API server, our client beside the official one
	@$(INSTALL) .venv-kubernetes --requirement requirements/bench-kubernetes.txt
	@$(ENVIRONMENT)/python -m benchmarks kubernetes-client

.PHONY: sam-local
sam-local: setup build environment-bench ## What comes of every sample of events/ in real containers (a minute; root, docker.io, busybox-static); JSON=1
	@$(AS_ROOT) $(ENVIRONMENT)/python -m relaunch_local.sam_local $(if $(JSON),--json)

bench: setup build environment-bench ## Cold starts, decision times, AWS calls: docs/benchmarks.md (about 5 minutes)
	@$(ENVIRONMENT)/pytest -q -m benchmark
	@$(ENVIRONMENT)/python -m benchmarks

policy: environment ## What market policies cost over the optimum on series: TRACES=folder, else drawn ones; JSON=1, DECISIONS=1, POOLS=together, PLOTS=folder
	@$(ENVIRONMENT)/python -m policy replay $(if $(TRACES),--traces $(TRACES)) $(if $(JSON),--json) $(if $(DECISIONS),--decisions) $(if $(POOLS),--pools $(POOLS)) $(if $(PLOTS),--plots $(PLOTS)) $(REPLAY)

policy-thresholds: environment ## Make the thresholds of the market policy again (half a minute); TRACES=folder from other series
	@$(ENVIRONMENT)/python -m policy thresholds $(if $(TRACES),--traces $(TRACES))

kubernetes-schemas: environment ## Derive the schemas of Jobs, by version, from the published ones, which are downloaded
	@$(ENVIRONMENT)/python catalogue/fetch.py schemas
	@$(ENVIRONMENT)/python catalogue/kubernetes_schemas.py

catalogue: environment ## Make the bundled catalogue again from pinned releases, which are downloaded
	@$(ENVIRONMENT)/python catalogue/fetch.py
	@$(ENVIRONMENT)/python catalogue/generate.py
	@$(ENVIRONMENT)/python catalogue/spot_advisor.py

clean: ## Remove everything that was installed or built
	rm -rf .venv .venv-sam .venv-emulator .venv-bench .venv-peers .venv-kubernetes .venv-mutate .venv-python .venv-pytorch .venv-trainers .venv-requirements .venv-workflows .venv-browser .venv-audit .venv*.lock .aws-sam .cache .mypy_cache .ruff_cache .pytest_cache
	rm -rf .import_linter_cache .hypothesis .coverage dist demo.json demo-failure.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
