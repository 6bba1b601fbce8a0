SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# Without this, a client library that takes this machine for a container dials
# its default gateway instead of the ports that the engine publishes here.
export TESTCONTAINERS_HOST_OVERRIDE ?= 127.0.0.1

CACHE   := $(or $(DOCKET_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/docket)
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS  := -s -w -X docket/internal/service/buildinfo.Version=$(VERSION) -X docket/internal/service/buildinfo.Revision=$(REVISION)

# The names by which docket is called as one of its programs alone.
LINKS    := consumer parking-replayer collector

GOLANGCI_VERSION    := v2.15.0
STATICCHECK_VERSION := v0.8.2
FUZZTIME            ?= 20s

.PHONY: help
help: ## Show this list; variables are in brackets, as in `make chaos SEED=2`
	@awk '/^##@ / { print "\n" substr($$0, 5) ":" } /^[a-z0-9-]+:.*## / { name = $$1; sub(/:.*/, "", name); sub(/.*## /, ""); printf "  %-12s %s\n", name, $$0 }' $(MAKEFILE_LIST)

##@ Trying it

.PHONY: demo
demo: ## Run everything in one process, with an outage; needs only Go (ARGS="--records 5000 --keep")
	@go build -o bin/demo/ ./cmd/docket
	@bin/demo/docket demo $(ARGS)

.PHONY: up
up: engine-compose images ## Start everything with Compose on loopback ports (PROFILE=opa,observability,redis adds OPA, Prometheus with Grafana, lanes with limits)
	@COMPOSE_PROFILES='$(or $(PROFILE),$(COMPOSE_PROFILES))' build/app up -d --build --wait --wait-timeout 180

.PHONY: pour
pour: ## Send the sample of real decision logs to what `make up` started, and print its homes
	@go run ./tools/pour $(ARGS)

.PHONY: down
down: ## Stop what `make up` started; volumes stay (ARGS=-v removes them)
	@COMPOSE_PROFILES=observability,opa,redis build/compose down $(ARGS)

##@ Building

.PHONY: build
build: ## Build the program as it is shipped: bin/docket, a static binary without the demo, and its other names as links
	CGO_ENABLED=0 go build -tags nodemo -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/docket ./cmd/docket
	@for name in $(LINKS); do ln -sfn docket bin/$$name; done

.PHONY: stage
stage: build ## Build bin/image for the Dockerfile with BUILDER=prebuilt
	@rm -rf bin/image && mkdir -p bin/image/bin && cp -P bin/docket $(addprefix bin/,$(LINKS)) bin/image/bin/
	@if [ -r /etc/ssl/certs/ca-certificates.crt ]; then cp -L /etc/ssl/certs/ca-certificates.crt bin/image/; else : >bin/image/ca-certificates.crt; fi

.PHONY: dashboard
dashboard: ## Write the Grafana dashboard again, after a change of deploy/check/dashboard
	go run ./deploy/check/dashboard

.PHONY: reference
reference: ## Write docs/commands.md again, after a change of a command or its help
	go run ./tools/reference -markdown docs/commands.md

.PHONY: site
site: ## Build the documentation as a static site with search: dist/site (SITE_BASE=/docket/ SITE_URL=https://docs.example PUBLIC_URL=https://git.example/owner/docket)
	@go -C tools/site run . -root ../.. -out ../../dist/site -revision '$(VERSION)' -base '$(or $(SITE_BASE),/)' -url '$(SITE_URL)' -source '$(if $(PUBLIC_URL),$(PUBLIC_URL)/blob/$(or $(REVISION),HEAD)/)'

.PHONY: release
release: ## Build a release: static programs for linux amd64 and arm64, checksums, SBOM
	@build/release

##@ Testing

.PHONY: test
test: engine ## Run unit tests, 500 schedules of faults, and the core on real Kafka and Postgres (INSTALL_ENGINE=1 does not ask)
	@build/test quick

.PHONY: test-all
test-all: engine ## Run every suite, with the race detector: 2,000 schedules, a campaign, alerts, chart, other engines
	@build/test fast sim alerts charts lake integration

.PHONY: test-fast
test-fast: ## Run unit tests only; no container engine, about a minute
	@build/test fast

.PHONY: browser
browser: engine images ## Drive the console with Chromium, beside the real programs, Kafka and Postgres (PICTURES=1 writes docs/console; ONLY=TestStory)
	@ONLY='$(ONLY)' PICTURES='$(PICTURES)' build/browser

.PHONY: alerts
alerts: ## Check and test the rules for Prometheus with promtool
	@build/alerts

.PHONY: charts
charts: ## Check the Helm chart: lint, values, and the rendered objects against the schemas of Kubernetes
	@build/charts

.PHONY: sim
sim: ## Play schedules of faults in virtual time (N=2000 FIRST=0 KEEP=1; SEED=n plays one and prints its history)
	@FIRST=$(FIRST) N=$(N) SEED=$(SEED) build/sim

.PHONY: sim-check
sim-check: ## Check that a seed of the simulation replays exactly, and that this check can fail
	@build/sim --check

.PHONY: e2e
e2e: engine-compose images ## Stop Postgres under load in Compose; account for every decision, alert and panel (OUTAGE=120s)
	@build/e2e

.PHONY: sqlstates
sqlstates: engine images ## Raise every SQLSTATE on a real Postgres, for one record and for all; print a table of the homes
	@build/sqlstates

.PHONY: chaos
chaos: engine images ## Run faults against the real programs, three brokers and Postgres (DURATION=20m SEED=1 RATE=120 STANDBY=1 LANES=1 OUT=file.md ONLY=word,…)
	@build/chaos

.PHONY: load
load: engine images ## Play the scenarios of load on lanes and limits, each with its bounds (ONLY=1,16 OUT=file.md)
	@ONLY='$(ONLY)' OUT='$(OUT)' build/load

.PHONY: lake
lake: ## Write an archive and ask DuckDB, pyarrow, Spark and Docket the same; compare all answers (N=1000000 PLANTS=1 SINGLE=1 OUT=file.md)
	@N='$(N)' PLANTS='$(PLANTS)' SINGLE='$(SINGLE)' OUT='$(OUT)' build/lake

.PHONY: mutants
mutants: engine images ## Plant bugs one at a time; the tests must catch each (ONLY=name,… JOBS=n SEEDS=n ARGS=-markdown)
	@go run ./tools/mutants -only '$(ONLY)' $(if $(JOBS),-jobs $(JOBS)) $(if $(SEEDS),-seeds $(SEEDS)) $(ARGS)

.PHONY: fuzz
fuzz: ## Run every fuzz target, one after the other (FUZZTIME=20s each)
	@build/fuzz $(FUZZTIME)

##@ Measuring

.PHONY: bench
bench: engine images ## Measure Docket beside COPY, with goals (N=1000000 ROUNDS=5 ONLY=drain,again,bad,replay,latency,outage,scale,memory,growth,desk,states,limit,collect,read,archive,console,budget,profile LETTERS=100000 PROFILE=file.pprof LONG=1 GROWTH=1 PEERS=1 AGAINST=COMMIT OUT=file.md)
	@N='$(N)' LETTERS='$(LETTERS)' ROUNDS='$(ROUNDS)' REPEAT='$(REPEAT)' SEED='$(SEED)' ONLY='$(ONLY)' LONG='$(LONG)' GROWTH='$(GROWTH)' FILLER='$(FILLER)' PEERS='$(PEERS)' PEER='$(PEER)' AGAINST='$(AGAINST)' PROFILE='$(abspath $(PROFILE))' OUT='$(OUT)' build/bench

.PHONY: bench-peers
bench-peers: engine images ## Measure Docket beside other workers; needs Java 17 and Maven (N=1000000 ROUNDS=5 PEER=spring,debezium,redpanda,telegraf,flink OUT=file.md)
	@N='$(N)' ROUNDS='$(ROUNDS)' REPEAT='$(REPEAT)' SEED='$(SEED)' ONLY=peers PEER='$(PEER)' OUT='$(OUT)' build/bench

.PHONY: bench-micro
bench-micro: ## Run the benchmarks of single packages, in the format of benchstat (COUNT=10 BENCH=regexp BENCHTIME=1s)
	@COUNT='$(COUNT)' BENCH='$(BENCH)' BENCHTIME='$(BENCHTIME)' build/bench micro

.PHONY: lines
lines: ## Count the lines of production code (AT=COMMIT)
	@build/lines $(AT)

##@ Linting

.PHONY: lint
lint: ## Run golangci-lint over both builds (built once; else staticcheck and vet), and the check of the prose
	@build/lint $(GOLANGCI_VERSION) $(STATICCHECK_VERSION)

##@ Containers

.PHONY: engine
engine: ## Check that a container engine answers; as root on Debian, start one (INSTALL_ENGINE=1 does not ask)
	@build/engine

.PHONY: engine-compose
engine-compose:
	@build/engine --compose

.PHONY: images
images: engine ## Pull the images of Kafka, Postgres, Redis and the reaper, or build stand-ins
	@build/images.sh

.PHONY: clean
clean: ## Remove bin, dist and coverage files (CLEAN_CACHE=1 also removes downloaded tools)
	rm -rf bin dist coverage.*
	@if [ -n "$(filter 1,$(CLEAN_CACHE))" ]; then rm -rf '$(CACHE)/tools' '$(CACHE)/compose'; fi
