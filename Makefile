# Run `make` to see what there is. CONTRIBUTING.md says more.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Modules are built as their users get them: without a workspace.
export GOWORK := off

# What `go test` is asked for. Narrow it for one package: make test PACKAGES=./cost/...
PACKAGES ?= ./...
# How tests are run. `make lint` has go vet.
TEST := go test -vet=off -shuffle=on -timeout 10m
# Tests have the race detector, and so have the programs that they build: each package is compiled once. SQLite is C that was
# translated into Go. It goes without the detector, which makes the tests of the store take one and a half times as long.
RACE := -race -gcflags=modernc.org/...=-race=false
test postgres mongo streams boards daemon test-valkey: export GOFLAGS := $(RACE)
# How long `make test-long` feeds each fuzz target.
FUZZTIME ?= 2m
# Which tables `make bench` prints (server, latency, redis, pipelining, go), and of how many rounds.
BENCH ?= .
BENCHCOUNT ?= 7

# Modules of the repository beside the root that have code of ours.
CONTRIB := $(patsubst %/go.mod,%,$(wildcard contrib/*/go.mod))
# Those that need foreign servers have a target of their own for their tests.
CONTRIB_TEST := $(filter-out contrib/postgresfeed contrib/mongofeed contrib/kafkastream contrib/prometheus contrib/grafana,$(CONTRIB))
# Those that are linted and formatted.
MODULES := $(CONTRIB) gqlratelimitd

GOLANGCI_LINT := go tool -modfile=$(CURDIR)/tools/lint/go.mod golangci-lint
GQLGEN := go tool -modfile=$(CURDIR)/tools/gqlgen/go.mod gqlgen

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test-tools
test-tools: ## Install redis-server, curl, nginx and python3 if they are missing; start no service
	@scripts/install-test-tools

.PHONY: test
test: test-tools ## Run all tests with the race detector
	$(TEST) $(PACKAGES)
	@for module in $(CONTRIB_TEST); do \
		echo "# $$module"; (cd "$$module" && $(TEST) ./...); \
	done

.PHONY: postgres
postgres: ## Test the feed of PostgreSQL; installs PostgreSQL and PgBouncer if they are missing, and starts no service
	@scripts/install-postgres
	cd contrib/postgresfeed && $(TEST) ./...

.PHONY: mongo
mongo: ## Test the feeds of MongoDB with FerretDB, which it builds without the race detector; the first time takes minutes
	cd tools/ferretdb && GOFLAGS= go build -o /dev/null .
	cd contrib/mongofeed && $(TEST) ./...

.PHONY: streams
streams: ## Test the sink of Kafka with kfake, which it builds without the race detector; installs kcat if it is missing
	@scripts/install-streams
	cd tools/kfake && GOFLAGS= go build -o /dev/null .
	cd contrib/kafkastream && $(TEST) ./...

.PHONY: boards
boards: test-tools ## Test metrics, alert rules, dashboards and the compose file with Prometheus and promtool; installs them if they are missing, and starts no service
	@scripts/install-prometheus
	cd contrib/prometheus && $(TEST) ./...
	cd contrib/grafana && $(TEST) ./...

.PHONY: daemon
daemon: test-tools ## Test gqlratelimitd on SQLite and on PostgreSQL; installs PostgreSQL if it is missing, and starts no service
	@scripts/install-postgres
	cd gqlratelimitd && $(TEST) ./...

# The modules below contrib and gqlratelimitd choose their own versions, so the next two are about the root module.
.PHONY: test-floor
test-floor: test-tools ## Compile with the oldest supported Go and dependencies, and test the packages that import one (no race detector)
	scripts/test-dependencies floor

.PHONY: test-newest
test-newest: test-tools ## Compile with the newest supported dependencies, and test the packages that import one (no race detector)
	scripts/test-dependencies newest

.PHONY: test-valkey
test-valkey: test-tools ## Run all tests with valkey-server, which has to be installed, in the place of redis-server
	TEST_REDIS_SERVER=valkey-server $(TEST) $(PACKAGES)

.PHONY: test-long
# Elsewhere property tests draw the same cases each time, see internal/seed.
test-long: export TEST_SEED := random
test-long: test-tools ## Repeat all tests in other orders, run the model of the stores, kill servers, and fuzz each target for FUZZTIME (default 2m)
	go test -race -shuffle=on -count=5 -timeout 60m $(PACKAGES)
	@for module in $(CONTRIB_TEST); do \
		echo "# $$module"; (cd "$$module" && go test -race -shuffle=on -count=5 -timeout 60m ./...); \
	done
	@# A million calls of each store against the model, and concurrent histories of half a minute.
	go test -v -run '^(TestMemoryRedisAndUnboundedFractionsAgree|TestNoWindowOfAnyLengthAdmitsMoreThanTheLimit)$$' \
		-timeout 60m ./bucket -rapid.checks=11500 -rapid.steps=60 -calls=1000000 -envelope=30s
	@# A million calls of the scripts on random states, byte for byte beside Go.
	go test -v -run '^TestGoAndBothPathsOfTheScriptsDecideAndStoreTheSameBytes$$' -timeout 60m ./internal/state -calls=1000000
	@# Ten million steps of instances that lease, with all that can fail.
	go test -run '^TestNoMoreIsAdmittedThanTheLimitInAnyInterval' -timeout 60m ./internal/lease -steps=10000000
	@# Scenes that take wall-clock time, and eight processes that lease, killed, stopped and cut off for two minutes.
	go test -tags long -v -timeout 60m ./internal/leasetest -fault-time=2m
	@# A hundred thousand histories of calls under policies that meet.
	go test -v -run '^TestNoDebtFallsFasterThanItsRefillWhateverPoliciesMeet$$' -timeout 60m ./bucket -histories=100000
	@# Three million takes of a gate beside a bare store.
	go test -v -run '^TestTheGateRefusesWhatTheStoreRefusesAsItDoes$$' -timeout 60m ./internal/backend -histories=40000
	@# A hundred thousand random operations, whose price is computed and interpreted.
	go test -v -run '^TestTheProgramOfAnOperationAndItsInterpreterAgree$$' -timeout 60m ./cost -rapid.checks=10000
	@# A hundred thousand random documents, validated here and by gqlparser.
	go test -v -run '^TestRandomDocumentsHaveTheVerdictOfGqlparser$$' -timeout 60m ./validation -rapid.checks=2000
	@# Searches for the operation that buys most bytes for a point, of the example and of a schema that is nothing but texts.
	go test -v -run '^TestAPointOfTheExampleBuysNoMoreBytesThanThePageSays$$' -timeout 60m ./example -documents=50000 -search-seed=$$RANDOM
	go test -v -run '^TestAPointBuysNoMoreBytesThanThePageSays$$' -timeout 60m ./cost -documents=500000 -search-seed=$$RANDOM
	@# A hundred thousand refusals through a Redis that is killed and frozen.
	go test -race -v -run Flood -timeout 60m ./event/redisstream -refusals=100000
	@# And through a Kafka whose leaders move besides.
	@scripts/install-streams
	cd contrib/kafkastream && go test -race -v -run Flood -timeout 60m . -refusals=100000
	@# Ten thousand revisions of policies, of which most are not to be served.
	go test -race -v -run '^TestWhatIsServedIsAlwaysTheNewestValidRevision$$' -timeout 60m ./policy -revisions=100
	@# A thousand races of 32 publishers on SQLite, and on PostgreSQL.
	@scripts/install-postgres
	cd gqlratelimitd && go test -v -run '^TestOf32PublishersOneWinsEachRoundAndTheLogHasNoFork$$' -timeout 60m ./internal/store -rounds=1000
	@# A thousand kills of whoever stands between a take and the counts by hour, on SQLite, and on PostgreSQL.
	cd gqlratelimitd && go test -tags long -v -run '^TestUsageEqualsChargesAfterKills$$' -timeout 60m . -kills=1000
	@# Two hundred kills of daemons that bring webhooks.
	cd gqlratelimitd && go test -v -run '^TestDaemonsThatAreKilledLoseNoMessageAndBringEachUnderOneID$$' -timeout 60m . -webhook-kills=200
	@# Mistakes in scripts that few calls show.
	go test -run '^TestAMistakeInAScriptIsFound$$' -timeout 60m ./internal/state -all-mutants
	@# A thousand kills of servers in each way to go on after an abandoned attempt.
	go test -v -timeout 60m ./internal/crashtest -kills=1000
	@# A Prometheus that scrapes the example and the control plane: its alerts fire, and each panel has an answer.
	@scripts/install-prometheus
	cd contrib/grafana && go test -tags long -v -timeout 20m .
	@# The tables of docs/reports/control-plane.md, printed and not written.
	go test -count=1 -v -timeout 20m ./internal/fleettest -all
	@# The table of docs/reports/faults.md, printed and not written.
	go test -count=1 -parallel=1 -v ./internal/faults -all
	scripts/fuzz $(FUZZTIME) $(PACKAGES)
	cd gqlratelimitd && ../scripts/fuzz $(FUZZTIME) ./...

.PHONY: fleet
fleet: test-tools ## Have 50 processes follow a Redis that breaks, and write the tables of docs/reports/control-plane.md, in some four minutes
	go test -count=1 -v -timeout 20m ./internal/fleettest -all -update

.PHONY: overload
overload: test-tools ## Make a dependency slow under the adaptive throttle, and write the table of docs/reports/throttle.md, in three minutes
	go test -count=1 -v -run '^TestTheTableOfTheReport$$' -timeout 20m ./internal/overload -all -update

.PHONY: clients
clients: test-tools ## Drive Apollo Client, urql and clients of Go into limits and out again, as docs/guide/clients.md says (needs Node.js and npm)
	cd contrib/clients/node && npm ci && node --test
	cd contrib/clients && go test -count=1 -parallel 4 -timeout 20m . -node

.PHONY: frameworks
frameworks: ## Mount a server in the web frameworks of docs/guide/redis.md, and compare its table
	cd contrib/frameworks && go test -count=1 .

.PHONY: cover
cover: test-tools ## Write coverage.out and print the coverage of each package and in total
	@go test -coverprofile=coverage.out -coverpkg=$$(go list ./... | grep -vE '/internal/(crashtest|e2e|faults|fleettest|freeport|freeze|leasetest|luatest|overload|postgrestest|redistest|seed|testserver)$$|/cmd/.*/internal/|/example' | paste -sd, -) $(PACKAGES)
	@go tool cover -func=coverage.out | tail -n 1

.PHONY: bench
bench: test-tools ## Print what matches BENCH of docs/reports/performance.md; without BENCH make all of it again, in some twenty minutes
	@cd contrib/benchmarks && go run . -match '$(BENCH)' -rounds $(BENCHCOUNT) $(if $(filter .,$(BENCH)),-into ../../docs/reports/performance.md)

.PHONY: bench-against
bench-against: test-tools ## Compare our own benchmarks with those of the commit BASE, in turns, with benchstat
	@scripts/bench-against '$(BASE)'

.PHONY: lint
lint: ## Check the rules of .golangci.yml, and the scripts where shellcheck is installed
	$(GOLANGCI_LINT) run --allow-parallel-runners ./...
	GOARCH=386 go build ./...
	@for module in $(MODULES); do \
		echo "# $$module"; (cd "$$module" && $(GOLANGCI_LINT) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...); \
	done
	@if command -v shellcheck >/dev/null; then \
		shellcheck .ci/run $$(grep -rlm1 '^#!.*bash' scripts); \
	else \
		echo 'lint: shellcheck is not installed, the scripts were not checked' >&2; \
	fi

.PHONY: format
format: ## Format the Go code as the linter wants it
	$(GOLANGCI_LINT) fmt ./...
	@for module in $(MODULES); do \
		(cd "$$module" && $(GOLANGCI_LINT) fmt --config $(CURDIR)/.golangci.yml ./...); \
	done

.PHONY: generate
generate: ## Regenerate the servers of the tests and of the example, the copies of the schema files, docs/reference/policy.md, and the dashboards
	cp schema.graphqls ratelimit-field.graphqls gqlgenplugin/
	cp schema.graphqls cmd/gqlratelimit/internal/source/schema.graphqls
	$(GQLGEN) generate --config gqlgen.yml
	cd example && $(GQLGEN) generate --config gqlgen.yml
	go generate ./docs/...
	cd contrib/grafana && go generate .

.PHONY: unchanged
unchanged: ## Fail if make generate or go mod tidy would change a file; it works on a copy
	scripts/unchanged
