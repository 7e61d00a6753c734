# CPython 3.11 or newer and GNU make are all a fresh machine needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install screenshots demo run test test-without-native test-slow test-backends scale lint format lock native-install native-check checks-install dashboards-install accessibility-install exporters-install collector-install broker-install backends-install emitters-install chaos faults overload soak fuzz fuzz-install bench bench-install bench-report reference prometheus-rule dist clean
.DEFAULT_GOAL := install

install: $(STAMP)

$(STAMP): requirements-dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("tracegrade needs CPython 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

demo: install
	$(BIN)/tracegrade demo

# With DEMO=1 the runs of the demonstration are on its page.
run: install
	$(BIN)/tracegrade run $(if $(DEMO),--demo)

# Many tests wait, for a grace or a process, so two run for each core.
WORKERS = $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN))
test: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not backends and not scale"

# What reads requests and spans, by the Python code alone.
test-without-native: install
	TRACEGRADE_NATIVE=off TRACEGRADE_REQUIRE_ALL= $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" \
	  tests/collector/otlp tests/collector/buffer tests/processors/spans tests/processors/records tests/processors/reconstruction

# What measures time, breaks things for a while, or holds each of what `make test` samples.
test-slow: install
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "slow and not scale"

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Pins every dependency by hash, without naming a registry: what the service needs, and what developers need.
# Needs uv.
LOCK := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-annotate --no-header
LOCK_GROUP := $(subst compile pyproject.toml,compile,$(LOCK)) --group pyproject.toml
lock:
	$(LOCK) --group dev --upgrade --output-file requirements-dev.lock
	$(LOCK) --extra kafka --constraint requirements-dev.lock --output-file requirements.lock
	$(LOCK_GROUP):build --constraint requirements-dev.lock --output-file requirements-build.lock
	$(LOCK_GROUP):native --upgrade --output-file requirements-native.lock
	cargo update --quiet --manifest-path native/Cargo.toml && grep -v '^source = ' native/Cargo.lock > native/crates.lock
	$(LOCK_GROUP):release --constraint requirements-dev.lock --output-file requirements-release.lock
	$(LOCK_GROUP):checks --upgrade --output-file requirements-checks.lock
	$(LOCK_GROUP):backends --upgrade --output-file requirements-backends.lock
	$(LOCK_GROUP):emitters --upgrade --output-file requirements-emitters.lock
	$(LOCK_GROUP):emitters-beside --upgrade --output-file requirements-emitters-beside.lock
	$(LOCK_GROUP):bench --upgrade --output-file requirements-bench.lock
	$(LOCK_GROUP):fuzz --constraint requirements-dev.lock --upgrade --output-file requirements-fuzz.lock

# The reader in Rust, built as the wheel that a release has, into the environment. Needs cargo.
NATIVE := .venv-native
NATIVE_SOURCES := $(wildcard native/src/*.rs) native/Cargo.toml native/Cargo.lock native/pyproject.toml
NATIVE_WHEELS := native/target/wheels

native-install: $(VENV)/.native-installed

# Cargo's lock names where packages come from; what is pinned by hash, native/crates.lock, is the same without that.
native/Cargo.lock: native/crates.lock native/Cargo.toml
	rm -f $@
	cargo generate-lockfile --quiet --manifest-path native/Cargo.toml
	sed "s|^checksum = .*|$$(grep -m1 '^source = ' $@)\n&|" native/crates.lock > $@.pinned
	mv $@.pinned $@

$(NATIVE)/.installed: requirements-native.lock
	$(PYTHON) -m venv --clear $(NATIVE)
	$(NATIVE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-native.lock
	@touch $@

$(VENV)/.native-installed: $(STAMP) $(NATIVE)/.installed $(NATIVE_SOURCES)
	rm -rf $(NATIVE_WHEELS)
	$(NATIVE)/bin/maturin build --quiet --release --manifest-path native/Cargo.toml --out $(NATIVE_WHEELS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall $(NATIVE_WHEELS)/*.whl
	@touch $@

native-check: $(NATIVE)/.installed native/Cargo.lock
	cargo fmt --manifest-path native/Cargo.toml --check
	cargo clippy --quiet --locked --release --manifest-path native/Cargo.toml -- -D warnings
	$(NATIVE)/bin/cargo-deny --manifest-path native/Cargo.toml check bans licenses sources

# The programs that check deploy/, in an environment of their own: no module of theirs may meet ours.
CHECKS := .venv-checks

checks-install: $(CHECKS)/.installed

$(CHECKS)/.installed: requirements-checks.lock
	$(PYTHON) -m venv --clear $(CHECKS)
	$(CHECKS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-checks.lock
	@touch $@

# Grafana's own types and a compiler, which check the dashboards. Needs Node.
DASHBOARD_CHECK := deploy/grafana/schema_check

dashboards-install: $(DASHBOARD_CHECK)/node_modules/.installed

$(DASHBOARD_CHECK)/node_modules/.installed: $(DASHBOARD_CHECK)/package-lock.json
	npm ci --prefix $(DASHBOARD_CHECK) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# axe-core, which looks for what keeps people from using the page. Needs npm.
ACCESSIBILITY := tests/accessibility

accessibility-install: $(ACCESSIBILITY)/node_modules/.installed

$(ACCESSIBILITY)/node_modules/.installed: $(ACCESSIBILITY)/package-lock.json
	npm ci --prefix $(ACCESSIBILITY) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# The pictures of the page in README and docs; a test checks that what they show is current. Needs Chromium.
screenshots: install
	$(BIN)/python -m tests.support.screenshots docs

# The stock OTLP exporters of other languages, which tests let send to the listeners. Needs Go, Node, npm, a JDK
# and Maven.
EXPORTERS := .exporters
EXPORTER_SOURCES := tests/stock_exporters

exporters-install: $(EXPORTERS)/.go $(EXPORTERS)/.node $(EXPORTERS)/.java

$(EXPORTERS)/.go: $(wildcard $(EXPORTER_SOURCES)/go/*)
	@mkdir -p $(EXPORTERS)
	go build -C $(EXPORTER_SOURCES)/go -o $(CURDIR)/$(EXPORTERS)/send-go .
	@touch $@

$(EXPORTERS)/.node: $(EXPORTER_SOURCES)/node/package-lock.json
	@mkdir -p $(EXPORTERS)
	npm ci --prefix $(EXPORTER_SOURCES)/node --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(EXPORTERS)/.java: $(wildcard $(EXPORTER_SOURCES)/java/*)
	mvn --quiet --batch-mode --file $(EXPORTER_SOURCES)/java/pom.xml dependency:copy-dependencies \
	  -DoutputDirectory=$(CURDIR)/$(EXPORTERS)/jars
	javac -cp '$(EXPORTERS)/jars/*' -d $(EXPORTERS)/java $(EXPORTER_SOURCES)/java/Send.java
	@touch $@

# The OpenTelemetry Collector with what deploy/otelcol/ uses, out of its Go modules. Needs Go; takes some minutes.
COLLECTOR := .collector
COLLECTOR_SOURCE := tests/stock_collector

collector-install: $(COLLECTOR)/otelcol

$(COLLECTOR)/otelcol: $(wildcard $(COLLECTOR_SOURCE)/*)
	@mkdir -p $(COLLECTOR)
	GOFLAGS=-mod=readonly GOTOOLCHAIN=local go build -C $(COLLECTOR_SOURCE) -trimpath -o $(CURDIR)/$@ .

# An Apache Kafka broker, out of its Maven packages. Needs a JDK and Maven.
BROKER := .broker
BROKER_SOURCE := tests/stock_broker

broker-install: $(BROKER)/.installed

$(BROKER)/.installed: $(BROKER_SOURCE)/pom.xml
	mvn --quiet --batch-mode --file $(BROKER_SOURCE)/pom.xml dependency:copy-dependencies \
	  -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(BROKER)/jars
	@touch $@

# Some minutes of load on replicas behind Collectors, and on a group behind Kafka. Needs root (for a name server of its own) and unshare.
scale: install collector-install broker-install
	$(BIN)/python -m pytest -m scale --timeout 300

# Trace backends that tests forward to, in an environment of their own. Two hundred packages: pip would take
# minutes for what uv, itself out of the same lock, does in seconds. The lock is complete: nothing is resolved.
BACKENDS := .venv-backends

backends-install: $(BACKENDS)/.installed

$(BACKENDS)/.installed: requirements-backends.lock
	$(PYTHON) -m venv --clear $(BACKENDS)
	sed -n '/^uv==/,/[^\\]$$/p' requirements-backends.lock > $(BACKENDS)/uv.lock
	$(BACKENDS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(BACKENDS)/uv.lock
	$(BACKENDS)/bin/uv pip install --quiet --python $(BACKENDS)/bin/python --no-deps --require-hashes -r requirements-backends.lock
	@touch $@

# Agents under real instrumentations, in two environments of their own: their versions do not go together.
# Beside them coding agents, which need Node.js.
EMITTERS := .venv-emitters .venv-emitters-beside
CODING_AGENTS := .coding-agents

emitters-install: $(addsuffix /.installed,$(EMITTERS) $(CODING_AGENTS))

$(CODING_AGENTS)/.installed: tests/emitters/coding_agents/package-lock.json
	@mkdir -p $(CODING_AGENTS)
	cp tests/emitters/coding_agents/package*.json $(CODING_AGENTS)
	npm ci --prefix $(CODING_AGENTS) --ignore-scripts --no-audit --no-fund --loglevel=error
	node $(CODING_AGENTS)/node_modules/@anthropic-ai/claude-code/install.cjs
	@touch $@

$(addsuffix /.installed,$(EMITTERS)): .venv-%/.installed: requirements-%.lock $(BACKENDS)/.installed
	$(PYTHON) -m venv --clear $(@D)
	$(BACKENDS)/bin/uv pip install --quiet --python $(@D)/bin/python --no-deps --require-hashes -r $<
	@touch $@

# Apart from the other tests: each of these servers takes a minute or more to start, and is started once.
test-backends: install backends-install emitters-install
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/backends

# kill -9 at 50 moments under load, with the journal on; ten of them are among the tests.
chaos: install
	CHAOS_KILLS=50 $(BIN)/python -m pytest -s --timeout 1800 tests/end_to_end/test_chaos.py

# Each fault of a backend for a minute; some seconds of each are among the tests.
faults: install
	FAULT_SECONDS=60 $(BIN)/python -m pytest -s tests/end_to_end/test_backend_faults.py

# Two minutes of everything that senders can do, with each gRPC server; some seconds of it are among the tests.
overload: install
	OVERLOAD_SECONDS=120 OVERLOAD_SERVERS="grpcio uvicorn" $(BIN)/python -m pytest -s tests/end_to_end/test_overload.py

# An hour of mixed traffic with failures and reloads; half a minute of it is among the tests.
SOAK_SECONDS ?= 3600
soak: install
	SOAK_SECONDS=$(SOAK_SECONDS) $(BIN)/python -m pytest -s tests/end_to_end/test_soak.py

# What guides fuzzing, with all that developers need: it runs the code.
FUZZ := .venv-fuzz

fuzz-install: $(FUZZ)/.installed

$(FUZZ)/.installed: requirements-dev.lock requirements-fuzz.lock
	$(PYTHON) -m venv --clear $(FUZZ)
	$(FUZZ)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  -r requirements-dev.lock -r requirements-fuzz.lock
	@touch $@

# Every target of tests/fuzz/ for FUZZ_SECONDS: ten million inputs in an hour or two. A short form is among the tests.
FUZZ_SECONDS ?= 900
fuzz: fuzz-install $(if $(shell command -v cargo),native-install)
	$(if $(shell command -v cargo),$(FUZZ)/bin/python $(PIP) install --no-deps --no-index --force-reinstall $(NATIVE_WHEELS)/*.whl)
	PYTHONPATH=$(CURDIR) $(FUZZ)/bin/python -m tests.fuzz --seconds $(FUZZ_SECONDS)

# What the benchmarks compare with: packages in an environment of their own, and the Collector out of its Go modules.
BENCH := .venv-bench
OTELCOL := benchmarks/otelcol

bench-install: $(BENCH)/.installed $(OTELCOL)/build/.built

$(BENCH)/.installed: requirements-bench.lock
	$(PYTHON) -m venv --clear $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	@touch $@

$(OTELCOL)/build/.built: $(OTELCOL)/main.go $(OTELCOL)/go.mod $(OTELCOL)/go.sum
	mkdir -p $(OTELCOL)/build
	@if command -v go > /dev/null; \
	  then cd $(OTELCOL) && GOFLAGS=-mod=readonly GOTOOLCHAIN=local go build -trimpath -o build/otelcol . && touch build/.built; \
	  else echo "Go is missing: the OpenTelemetry Collector is left out of the benchmarks"; fi

bench: install bench-install
	$(BIN)/python -m benchmarks peers

# Writes the figures of docs/performance.md and draws its plots; about an hour on an idle machine.
bench-report: install bench-install
	$(BIN)/python -m benchmarks peers --into docs/performance.md
	$(BIN)/python -m benchmarks peers --rate 5000 --into docs/performance.md
	for subject in held criteria agents; do \
	  $(BIN)/python -m benchmarks scaling $$subject --plots docs --into docs/performance.md || exit 1; done
	$(BIN)/python -m benchmarks micro --into docs/performance.md

# What a release consists of (docs/releasing.md): wheel and source distribution, and the wheel of the reader in Rust
# for this platform where there is cargo, each built twice to the same bytes;
# the bill of materials of an environment that holds the locked dependencies and the wheel, in which the
# demonstration ran; the schema of criteria; the sums of all of them.
RELEASE := .venv-release
DIST ?= dist
PIP := -m pip --quiet --disable-pip-version-check
CARGO_FOLDER = $(or $(CARGO_HOME),$(HOME)/.cargo)
NATIVE_DIST = RUSTFLAGS="--remap-path-prefix=$(CARGO_FOLDER)=cargo" CARGO_TARGET_DIR=$(abspath $(DIST))/target \
  $(NATIVE)/bin/maturin build --quiet --release --manifest-path native/Cargo.toml --out $$folder && rm -r $(DIST)/target

$(RELEASE)/.installed: requirements-release.lock
	$(PYTHON) -m venv --clear $(RELEASE)
	$(RELEASE)/bin/python $(PIP) install --require-hashes -r requirements-release.lock
	@touch $@

dist: export SOURCE_DATE_EPOCH := $(or $(shell git log -1 --format=%ct 2>/dev/null),1580601600)
dist: $(RELEASE)/.installed $(if $(shell command -v cargo),$(NATIVE)/.installed native/Cargo.lock)
	rm -rf $(DIST)
	$(RELEASE)/bin/python -m build --no-isolation --outdir $(DIST) > /dev/null
	umask 077 && $(RELEASE)/bin/python -m build --no-isolation --outdir $(DIST)/again > /dev/null
	$(if $(shell command -v cargo),for folder in $(DIST) $(DIST)/again; do $(NATIVE_DIST) || exit 1; done)
	for file in $(DIST)/again/*; do cmp $$file $(DIST)/$${file##*/} || exit 1; done
	$(PYTHON) -m venv $(DIST)/environment
	$(DIST)/environment/bin/python $(PIP) install --require-hashes -r requirements.lock
	$(DIST)/environment/bin/python $(PIP) install --no-deps --no-index $(DIST)/tracegrade-*.whl
	cd $(DIST)/again && ../environment/bin/tracegrade demo
	$(DIST)/environment/bin/tracegrade schema criteria > $(DIST)/criteria.schema.json
	$(DIST)/environment/bin/python $(PIP) uninstall --yes pip setuptools 2> /dev/null
	$(RELEASE)/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible \
	  --output-file $(DIST)/tracegrade.cdx.json $(DIST)/environment
	for wheel in $(DIST)/tracegrade_native-*.whl; do [ ! -e $$wheel ] \
	  || $(RELEASE)/bin/python -m pip --python $(DIST)/environment/bin/python install --quiet --no-deps --no-index $$wheel; done
	cd $(DIST)/again && ../environment/bin/tracegrade print-config | head -1
	rm -r $(DIST)/again $(DIST)/environment
	cd $(DIST) && sha256sum * > SHA256SUMS

clean:
	rm -rf $(VENV) $(RELEASE) $(CHECKS) $(NATIVE) native/target $(BACKENDS) $(FUZZ) .fuzz $(EXPORTERS) $(COLLECTOR) $(BENCH) $(OTELCOL)/build dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Writes what is generated from the code: JSON schemas and reference pages.
reference: install
	$(BIN)/tracegrade schema config > config/tracegrade.schema.json
	$(BIN)/tracegrade schema objectives > config/objectives.schema.json
	$(BIN)/tracegrade schema run > config/run.schema.json
	$(BIN)/python -m docs.generate
	$(BIN)/python -m deploy.grafana.generator
	$(MAKE) --no-print-directory prometheus-rule

# The rules in the form that the Prometheus operator takes, and where the chart finds them.
MONITORING := deploy/kubernetes/components/monitoring
prometheus-rule:
	sed '/./s/^/  /' deploy/prometheus/rules/tracegrade.yaml \
	  | cat $(MONITORING)/prometheusrule.head.yaml - > $(MONITORING)/prometheusrule.yaml
	cp deploy/prometheus/rules/tracegrade.yaml deploy/helm/tracegrade/files/rules.yaml
