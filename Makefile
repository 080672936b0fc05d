# vaultd: what a developer calls. "make" alone lists the targets.

GO    ?= go
TOOLS := $(GO) tool -modfile=tools/go.mod
MODULE_TOOLS := $(GO) tool -modfile=../tools/go.mod

# The race detector needs cgo, and go switches that off where there is no C compiler.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

# Nothing that a test writes has to outlive the machine, and in memory a sync takes no time: where there is room in memory, the short forms of the tests
# have their files there. In full they have them on the disk.
MEMORY := $(shell df -k --output=avail /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 4 * 1024 * 1024 { print "TMPDIR=/dev/shm" }')

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

# One set of build settings for all clones: -trimpath makes a package of one clone the same as that of another.
export GOFLAGS ?= -trimpath -buildvcs=false

# The packages that take longest begin first.
ALL := ./cmd/vaultd ./internal/test/simulation ./internal/test/readings ./...

# make check vets all packages, so the tests do not.
TEST := $(GO) test -vet=off -p 3 -parallel 14 -timeout 25m

test: ## the short form of every test
	$(MEMORY) $(TEST) -short $(ALL)
	$(MEMORY) $(TEST) -C bench -short ./...
	@printf '\nThese tests are left out or try a sample; make long runs them in full:\n'; $(LONGTESTS) | cut -f2 | sort | tr '\n' ' '; echo

# The tests that call kit.Long or kit.Sampled: folder and name.
LONGTESTS := awk '/^func Test/ { split($$2, name, "("); test = name[1] } /kit\.(Long|Sampled)\(t,|isSampled\(t,/ && test && !seen[test]++ { dir = FILENAME; sub(/[^\/]*$$/, "", dir); print dir "\t" test }' $$(git ls-files '*_test.go')

long: ## what the short form leaves out, in full
	@set -e; tests=$$($(LONGTESTS)); for module in . bench; do \
		list=$$(printf '%s\n' "$$tests" | awk -v bench=$$([ $$module = bench ] && echo 1 || echo 0) '(/^bench/ ? 1 : 0) == bench'); \
		folders=$$(printf '%s\n' "$$list" | cut -f1 | sort -u | sed 's|^bench/|./|; /^\./!s|^|./|'); \
		$(TEST) -C $$module -count=1 -run "^($$(printf '%s\n' "$$list" | cut -f2 | sort -u | paste -sd'|'))$$" $$folders; \
	done

# These start no goroutine and hold no lock: the race detector has nothing to find in them.
RACELESS := ledger ledger/arrival archive billing present expected chart sanitize books vaultapi pdfapi extractapi test/mutants test/measure test/docs

race-short: ## the short form of the tests with the race detector
	$(if $(RACE),$(MEMORY) $(TEST) -race -short $$($(GO) list $(ALL) | grep -vxF $(addprefix -e vaultd/internal/,$(RACELESS))),@echo "no C compiler: NO race detector")

disk: ## the packages that store files, on a disk
	$(TEST) -count=1 -short $(addprefix ./internal/,ledger/boltledger durable drop spool custody)

race: ## every test in full with the race detector
	$(TEST) -race -count=1 -timeout 90m $$($(GO) list $(ALL) | grep -vxF -e vaultd/internal/test/mutants)
	$(TEST) -C bench -race -count=1 ./...

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
