# vaultd: what a developer calls. "make" alone lists the targets.

GO    ?= go
TOOLS := $(GO) tool -modfile=tools/go.mod
MODULE_TOOLS := $(GO) tool -modfile=../tools/go.mod

# The race detector needs cgo, and go switches that off where there is no C compiler.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

# Nothing that a test writes has to outlive the machine, and in memory a sync takes no time: where there is room in memory, the short forms of the tests
# have their files there. In full they have them on the disk.
MEMORY := $(shell df -k --output=avail /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 4 * 1024 * 1024 { print "TMPDIR=/dev/shm" }')

# These open files so often that go needs minutes and gigabytes to note them all, as it does to use a result again.
UNCACHED  := vaultd/internal/packager vaultd/internal/receive vaultd/internal/test/readings vaultd/internal/test/simulation

# This compiles each mutant, one after the other: there is nothing for the race detector in it.
RACELESS  := vaultd/internal/test/mutants

comma := ,

.DEFAULT_GOAL := help
# How much of the long forms: make simulate SEEDS=100, make campaign KILLS=20, make mutants MUTANTS=Grace, make fuzz FUZZTIME=10s
SEEDS    ?= 10000
KILLS    ?= 200
RUNS     ?= 20000
MUTANTS  ?= all
FUZZTIME ?= 60s
LONG     := $(GO) test -count=1 -timeout 0 -v

.PHONY: race measure browser screenshots axe-core help build install test test-long check fmt docs demo clean simulate campaign long plan mutants fuzz canary model bench bench-quick

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# What the program says of itself where it is built without version control, as from an archive of the sources.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)

build: ## the program, as ./vaultd
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.madeVersion=$(VERSION) -X main.madeCommit=$(COMMIT)" -o vaultd ./cmd/vaultd

# Where "make install" puts things. DESTDIR is set before each path, for those who make a package.
PREFIX  ?= /usr/local
DESTDIR ?=
PROGRAM ?= ./vaultd
SHARE    = $(DESTDIR)$(PREFIX)/share

install: $(if $(filter ./vaultd,$(PROGRAM)),build) ## the program, its unit, man pages, completion and examples, below PREFIX
	install -D -m 0755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/vaultd
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system $(SHARE)/man/man8 $(SHARE)/vaultd $(SHARE)/doc/vaultd \
		$(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	sed 's|/usr/bin/vaultd|$(PREFIX)/bin/vaultd|' systemd/vaultd.service > $(DESTDIR)$(PREFIX)/lib/systemd/system/vaultd.service
	install -D -m 0644 systemd/sysusers.d/vaultd.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/vaultd.conf
	install -m 0644 docs/man/*.8 $(SHARE)/man/man8
	$(PROGRAM) completion bash > $(SHARE)/bash-completion/completions/vaultd
	$(PROGRAM) completion zsh > $(SHARE)/zsh/site-functions/_vaultd
	$(PROGRAM) completion fish > $(SHARE)/fish/vendor_completions.d/vaultd.fish
	$(PROGRAM) check --schema > $(SHARE)/vaultd/config.schema.json
	$(PROGRAM) check --schema sidecar > $(SHARE)/vaultd/sidecar.schema.json
	install -m 0644 config.example.yaml systemd/vaultd.service.d/50-site.conf.example systemd/vaultd-report.timer docs/*.md $(SHARE)/doc/vaultd
	sed 's|/usr/bin/vaultd|$(PREFIX)/bin/vaultd|' systemd/vaultd-report.service > $(SHARE)/doc/vaultd/vaultd-report.service

# "make check" vets all of it; a vet before each test would do so once more.
test: ## every package in a few minutes; tests that take long leave a part to test-long
	@set -e; begun=$$(date +%s); all=$$($(GO) list ./...); \
	cached=$$(printf '%s\n' "$$all" | grep -vxF $(addprefix -e ,$(UNCACHED))); \
	echo "go test -short, all packages$(if $(MEMORY),$(comma) with their files in memory)"; \
	$(MEMORY) $(GO) test -vet=off -short -p 3 -parallel 14 -timeout 15m $$cached; \
	$(MEMORY) $(GO) test -vet=off -short -count=1 -timeout 15m $(UNCACHED); \
	$(MEMORY) $(GO) -C bench test -vet=off -short -timeout 15m ./...; \
	echo; echo "make test: all $$(printf '%s\n' "$$all" | wc -l) packages and bench passed in $$(($$(date +%s) - begun)) s, without the race detector."; \
	echo "make test-long runs all of them with it, and what was left out here:"; \
	grep -rhoE '"[^"]* left to [^"]*make test-long[^"]*"' --include='*_test.go' cmd internal bench | tr -d '"' | sort -u | sed 's/^/  /'

test-long: ## every test in full on the disk, and its short form with the race detector
	@set -e; begun=$$(date +%s); all=$$($(GO) list ./...); \
	cached=$$(printf '%s\n' "$$all" | grep -vxF $(addprefix -e ,$(UNCACHED))); \
	if [ -z "$(RACE)" ]; then echo "no C compiler: nothing runs with the race detector"; else \
		echo "go test -race -short, all packages$(if $(MEMORY),$(comma) with their files in memory)"; \
		$(MEMORY) $(GO) test -vet=off -race -short -p 3 -parallel 14 -timeout 25m $$(printf '%s\n' "$$cached" | grep -vxF $(addprefix -e ,$(RACELESS))); \
		$(MEMORY) $(GO) test -vet=off -race -short -count=1 -timeout 25m $(UNCACHED); \
		$(MEMORY) $(GO) -C bench test -vet=off -race -short -timeout 25m ./...; \
	fi; \
	echo "go test in full, all packages"; \
	$(GO) test -vet=off -p 3 -parallel 14 -timeout 25m $$cached; \
	$(GO) test -vet=off -count=1 -timeout 25m $(UNCACHED); \
	$(GO) -C bench test -vet=off -count=1 -timeout 25m ./...; \
	echo; echo "make test-long: all $$(printf '%s\n' "$$all" | wc -l) packages and bench passed in full in $$(($$(date +%s) - begun)) s$(if $(RACE),$(comma) and in their short form with the race detector);"; \
	echo "the state models, searches, packages, large files, the crash matrix, the simulation and bench were in it, and ten deaths of the real program."; \
	echo "make race, simulate, campaign, mutants, model, long, fuzz and canary go on for longer, each when it is asked for."

race: ## every test in full with the race detector; those that it makes many times slower try a part
	@set -e; all=$$($(GO) list ./...); \
	$(GO) test -race -parallel 6 -timeout 60m $$(printf '%s\n' "$$all" | grep -vxF $(addprefix -e ,$(UNCACHED) $(RACELESS))); \
	$(GO) test -race -count=1 -timeout 60m $(UNCACHED); \
	$(GO) -C bench test -race -count=1 -timeout 60m ./...

check: ## formatting, vet, linters and the import rules
	@bad=$$(gofmt -l cmd internal bench browser); if [ -n "$$bad" ]; then echo "gofmt would change:"; echo "$$bad"; exit 1; fi
	$(GO) vet ./...
	$(TOOLS) staticcheck ./...
	$(TOOLS) golangci-lint run ./...
	$(GO) -C bench vet ./...
	cd bench && $(MODULE_TOOLS) staticcheck ./...
	cd bench && $(MODULE_TOOLS) golangci-lint run ./...
	$(GO) -C browser vet ./...
	cd browser && $(MODULE_TOOLS) staticcheck ./...
	cd browser && $(MODULE_TOOLS) golangci-lint run ./...

browser: axe-core ## the pages in a real Chromium, with axe-core: needs Debian's chromium and npm
	$(GO) -C browser test -count=1 -v -timeout 10m ./...

screenshots: axe-core ## the pictures of the pages anew, in docs/img: made by hand, because they show times
	mkdir -p docs/img
	VAULTD_SCREENSHOTS=$(CURDIR)/docs/img $(GO) -C browser test -count=1 -v -run '^TestScreenshots$$' .

axe-core:
	@npm ci --prefix browser --ignore-scripts --no-audit --no-fund --loglevel=error || echo "axe-core could not be installed: npm is missing, or reaches no registry"

simulate: ## simulated years with faults, from SEEDS seeds
	SEEDS=$(SEEDS) $(LONG) -run '^TestSimulation$$' ./internal/test/simulation

campaign: ## the real program, killed KILLS times under load
	KILLS=$(KILLS) $(LONG) -run '^TestCampaign$$' ./internal/test/campaign

long: ## storms, bursts and hostile folders in their full numbers: up to a million files
	VAULTD_LONG=1 $(LONG) -run '^(TestAsk_RequestsPerDocument|TestAsk_I25_OpenForADay)$$' ./internal/ingest
	VAULTD_LONG=1 $(LONG) -run '^TestBurst_I22_NoneIsLost$$' ./internal/watch
	VAULTD_LONG=1 $(LONG) -run '^TestStorm_I21_ThousandsAtOnce$$' ./internal/daemon
	VAULTD_LONG=1 $(LONG) -run '^TestHostile_I19_I21_I23$$' ./cmd/vaultd

plan: ## how much is registered at once, on RUNS simulated lines: make plan RUNS=1000000 takes hours
	RUNS=$(RUNS) $(LONG) -run '^TestPlan_I6_SimulatedLines$$' ./internal/window

model: ## every order of events, to the end of a larger world (minutes, and memory)
	VAULTD_MODEL=2 VAULTD_MODEL_STATES=1500000 $(LONG) -run '^TestModel_Promises$$' ./internal/ledger

mutants: axe-core ## known mistakes, planted one by one: a test must find each
	MUTANTS='$(MUTANTS)' $(LONG) -run '^TestMutants$$' ./internal/test/mutants

canary: ## all tests, and a search for secrets in whatever they wrote
	VAULTD_CANARY=1 $(LONG) -run '^TestSuite_I7' ./internal/test/canary

fuzz: ## every fuzz target for FUZZTIME
	@set -e; for dir in $$(grep -l '^func Fuzz' -r cmd internal --include='*_test.go' | xargs -n1 dirname | sort -u); do \
		for target in $$($(GO) test -list '^Fuzz' ./$$dir | grep '^Fuzz'); do \
			echo "$$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 50x -parallel 1 ./$$dir; \
		done; \
	done

bench: ## speed, syncs and memory against limits and peers, in full (bench/README.md)
	$(GO) -C bench run . all

bench-quick: ## the same with a tenth of the data
	$(GO) -C bench run . all -quick -pairs 3

measure: ## figures of the code itself, by package: lines, names, comments
	@$(GO) run ./internal/test/measure

fmt: ## format all Go files
	gofmt -w cmd internal bench browser

docs: ## make anew what is generated
	$(GO) generate ./...
	$(GO) test ./internal/web -run Metrics -update
	$(GO) test ./internal/report -run Guarantees -update-guarantees
	$(GO) test ./internal/config -run ConfigDocs -update-docs
	$(GO) test ./cmd/vaultd -run MessageIDs -update-docs

demo: ## try it: service, drop folders and daemon on this machine alone
	$(GO) run ./cmd/vaultd demo

clean: ## remove what was built
	rm -f vaultd
