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
LDFLAGS  := -s -w -X docket/internal/buildinfo.Version=$(VERSION) -X docket/internal/buildinfo.Revision=$(REVISION)

GOLANGCI_VERSION    := v2.15.0
STATICCHECK_VERSION := v0.8.2
FUZZTIME            ?= 20s

.PHONY: help
help: ## Show this; what stands in brackets are variables, as in `make chaos SEED=2`
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

##@ Trying it

.PHONY: demo
demo: ## Everything in one process, an outage included; needs nothing (ARGS="--records 5000 --keep")
	go run ./cmd/consumer demo $(ARGS)

.PHONY: up
up: engine-compose images ## Start it all with Compose, on loopback ports; PROFILE=opa adds an OPA, PROFILE=observability Prometheus and Grafana, by comma both
	@COMPOSE_PROFILES='$(or $(PROFILE),$(COMPOSE_PROFILES))' build/app up -d --build --wait --wait-timeout 180

.PHONY: pour
pour: ## Pour the sample of real decision logs into what `make up` started, and say what became of it
	@go run ./build/pour $(ARGS)

.PHONY: down
down: ## Stop what `make up` started; volumes stay (ARGS=-v removes them)
	@COMPOSE_PROFILES=observability,opa build/compose down $(ARGS)

##@ Building

.PHONY: build
build: ## The programs as static binaries into bin/
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: stage
stage: build ## bin/ as the Dockerfile wants it for BUILDER=prebuilt
	@if [ -r /etc/ssl/certs/ca-certificates.crt ]; then cp -L /etc/ssl/certs/ca-certificates.crt bin/; else : >bin/ca-certificates.crt; fi

.PHONY: dashboard
dashboard: ## Write the Grafana dashboard anew, after a change of build/dashboard
	go run ./build/dashboard

.PHONY: release
release: ## What is published: static programs for linux amd64 and arm64, checksums, SBOM
	@build/release

##@ Testing

.PHONY: test
test: engine ## The whole: fast and integration suites with the race detector, the programs, the simulation, a campaign, alerts, chart
	@build/test fast sim alerts charts integration

.PHONY: test-fast
test-fast: ## Plain tests; no container engine, under a minute
	@build/test fast

.PHONY: alerts
alerts: ## The rules for Prometheus, checked and tested with promtool
	@build/alerts

.PHONY: charts
charts: ## The Helm chart: lint, its values' schema, what it renders against the schemas of Kubernetes
	@build/charts

.PHONY: sim
sim: ## N (2000) schedules of faults in virtual time, from seed FIRST on (KEEP=1: past failures); SEED=n plays one with its history
	@FIRST=$(FIRST) N=$(N) SEED=$(SEED) build/sim

.PHONY: sim-check
sim-check: ## See that a seed of the simulation replays exactly, and that this check can fail
	@build/sim --check

.PHONY: e2e
e2e: engine-compose images ## Compose for real: stop Postgres under load, account for every decision, alerts and panels (OUTAGE=120s)
	@build/e2e

.PHONY: sqlstates
sqlstates: engine images ## Every SQLSTATE raised on a real Postgres, on one record and on all: a table of what became of it
	@build/sqlstates

.PHONY: chaos
chaos: engine images ## Faults against the real programs on three brokers and Postgres (DURATION=20m SEED=1 RATE=120 OUT=file.md ONLY=word,…)
	@build/chaos

.PHONY: mutants
mutants: engine images ## Plant bugs one at a time and see each caught by the tests (ONLY=name,… JOBS=n SEEDS=n ARGS=-markdown)
	@go run ./build/mutants -only '$(ONLY)' $(if $(JOBS),-jobs $(JOBS)) $(if $(SEEDS),-seeds $(SEEDS)) $(ARGS)

.PHONY: fuzz
fuzz: ## Every fuzz target, one after the other (FUZZTIME=20s each)
	@build/fuzz $(FUZZTIME)

##@ Measuring

.PHONY: bench
bench: engine images ## Docket beside COPY, with goals (N=1000000 ROUNDS=5 ONLY=drain,again,bad,replay,latency,outage,scale,memory,growth,desk,collect,read LONG=1 GROWTH=1 PEERS=1 OUT=file.md)
	@N='$(N)' ROUNDS='$(ROUNDS)' REPEAT='$(REPEAT)' SEED='$(SEED)' ONLY='$(ONLY)' LONG='$(LONG)' GROWTH='$(GROWTH)' FILLER='$(FILLER)' PEERS='$(PEERS)' PEER='$(PEER)' OUT='$(OUT)' build/bench

.PHONY: bench-peers
bench-peers: engine images ## Docket beside workers of others; needs Java 17 and Maven (N=1000000 ROUNDS=5 PEER=spring,debezium,redpanda OUT=file.md)
	@N='$(N)' ROUNDS='$(ROUNDS)' REPEAT='$(REPEAT)' SEED='$(SEED)' ONLY=peers PEER='$(PEER)' OUT='$(OUT)' build/bench

.PHONY: bench-micro
bench-micro: ## Benchmarks of single packages, as benchstat wants them (COUNT=10 BENCH=regexp BENCHTIME=1s)
	@COUNT='$(COUNT)' BENCH='$(BENCH)' BENCHTIME='$(BENCHTIME)' build/bench micro

##@ Linting

.PHONY: lint
lint: ## golangci-lint over both builds, built once into the cache; staticcheck and vet where it cannot be had
	@build/lint $(GOLANGCI_VERSION) $(STATICCHECK_VERSION)

##@ Containers

.PHONY: engine
engine: ## See that a container engine answers; start one as root on Debian
	@build/engine

.PHONY: engine-compose
engine-compose:
	@build/engine --compose

.PHONY: images
images: engine ## Have the images of Kafka, Postgres and the reaper, or build stand-ins
	@build/images.sh

.PHONY: clean
clean: ## Remove what was built here; CLEAN_CACHE=1 also removes downloaded tools
	rm -rf bin dist coverage.*
	@if [ -n "$(filter 1,$(CLEAN_CACHE))" ]; then rm -rf '$(CACHE)/tools' '$(CACHE)/compose'; fi
