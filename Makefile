# Everything here needs GNU make 3.81 or newer and Python 3.11 to 3.13; `make setup` gets the rest.
# All paths are relative, so that the project may lie in a directory with spaces in its name.

PYTHON ?= python3
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
ARGS =

# A container engine, the image's name, and further options for its build.
DOCKER ?= docker
IMAGE ?= checkpoint-resume
IMAGE_ARGS ?=

VENV := .venv
IN_VENV := $(VENV)/bin/python
STAMP := $(VENV)/made-with

# The environment stays as it is until PYTHON= names another interpreter than the one it was made with.
ifneq ($(origin PYTHON),file)
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(PYTHON))
.PHONY: $(STAMP)
endif
endif

.PHONY: help setup run verify expected portability report pictures test lint bench lock engine image image-run image-verify image-test image-ci clean

help: ## list the targets
	@echo 'Usage: make TARGET [PYTHON=python3.12] [ARGS="more arguments"]'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## make .venv from the locked, hashed requirements (done once; the other targets ask for it)

$(STAMP): requirements.txt requirements-dev.txt
	@sh tools/setup.sh "$(PYTHON)" $(VENV) requirements-dev.txt "$(TORCH_INDEX)"
	@printf '%s\n' "$(PYTHON)" > $@

run: $(STAMP) ## train, interrupt, resume and compare all 35 combinations; artifacts go to results/
	$(IN_VENV) experiment.py run --output-dir results $(ARGS)
	@echo PASS

verify: $(STAMP) ## judge a fresh run in results/, or what lies in RESULTS=dir, against expected/
ifndef RESULTS
	$(IN_VENV) experiment.py run --output-dir results
endif
	$(IN_VENV) verify.py "$(or $(RESULTS),results)" $(ARGS)

expected: $(STAMP) ## renew expected/ from a fresh run, after showing what changes
	$(IN_VENV) experiment.py run --output-dir build/expected
	$(IN_VENV) verify.py build/expected --no-expected
	$(IN_VENV) verify.py build/expected --require-bitwise || true
	mkdir -p expected
	cp build/expected/* expected/

portability: $(STAMP) ## compare emulated processors, with all numeric pins and without each (ARGS="--pinned Nehalem")
	$(IN_VENV) tools/portability.py $(ARGS)

report: $(STAMP) ## draw results/ (made when missing), or what lies in RESULTS=dir, as report/index.html
ifndef RESULTS
	@test -e results/run-summary.json || $(IN_VENV) experiment.py run --output-dir results || test $$? = 1
endif
	$(IN_VENV) report.py "$(or $(RESULTS),results)" $(ARGS)

pictures: $(STAMP) ## renew the pictures of the README in docs/ from expected/
	$(IN_VENV) report.py expected --output-dir build/pictures
	mkdir -p docs
	cp build/pictures/matrix.svg build/pictures/divergence.svg docs/

test: $(STAMP) ## run the test suite
	$(IN_VENV) -m pytest $(ARGS)

lint: $(STAMP) ## check style, format and types
	$(IN_VENV) -m ruff check .
	$(IN_VENV) -m ruff format --check .
	$(IN_VENV) -m mypy

bench: $(STAMP) ## measure speed and memory, each figure beside its bound
	$(IN_VENV) tests/bench.py $(ARGS)

lock: $(STAMP) ## compile requirements*.in into requirements*.txt (ARGS=--upgrade takes newer versions)
	$(IN_VENV) tools/lock.py $(ARGS)

engine: ## check that a container engine answers (DOCKER=podman for another than Docker)
	@$(DOCKER) version >/dev/null 2>&1 || { echo "no container engine answers as '$(DOCKER)': \
	start or install one, or name another, for example: make image DOCKER=podman" >&2; exit 2; }

image: engine ## build the container image (IMAGE=name, IMAGE_ARGS="more options")
	$(DOCKER) build --tag $(IMAGE) --build-arg TORCH_INDEX="$(TORCH_INDEX)" \
		--build-arg REVISION="$$(git describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null)" $(IMAGE_ARGS) .

# No network, no rights, nothing to write to but /tmp and the mount; what is written belongs to the caller.
CONFINED := --rm --network none --read-only --cap-drop ALL --security-opt no-new-privileges --tmpfs /tmp
AS_CALLER = --user "$$(id -u):$$(id -g)" $(KEEP_ID)
# Podman without root gives a container other user numbers than the host's, unless it is told not to.
KEEP_ID = $(if $(filter-out 0,$(shell id -u)),$(if $(findstring podman,$(shell $(DOCKER) --version)),--userns keep-id))
IMAGE_RESULTS = $(or $(RESULTS),results)
MOUNTED = --volume "$$(cd "$(IMAGE_RESULTS)" && pwd)":/results

image-run: engine ## run the experiment in a container, which is built when missing; artifacts go to results/
	@$(DOCKER) image inspect $(IMAGE) >/dev/null 2>&1 || $(MAKE) image
	@mkdir -p "$(IMAGE_RESULTS)"
	$(DOCKER) run $(CONFINED) $(AS_CALLER) $(MOUNTED):z $(IMAGE) run --output-dir /results $(ARGS)

image-verify: image-run ## run the experiment in a container, then verify its artifacts in another
	$(DOCKER) run $(CONFINED) $(AS_CALLER) $(MOUNTED):ro,z --entrypoint python $(IMAGE) verify.py /results

image-test: engine $(STAMP) ## build the container image and test it
	DOCKER="$(DOCKER)" IMAGE="$(IMAGE)" $(IN_VENV) -m pytest -v tests/image.py $(ARGS)

image-ci: ## the same, with a private engine or a stand-in base where there is none (Debian, as root)
	$(PYTHON) tools/with_engine.py $(MAKE) image-test

clean: ## remove the environment, results, reports and caches
	rm -rf $(VENV) results report build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
