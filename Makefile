# vaultd: what a developer calls. "make" alone lists the targets.

GO    ?= go
TOOLS := $(GO) tool -modfile=tools/go.mod
MODULE_TOOLS := $(GO) tool -modfile=../tools/go.mod

# One set of build settings for all clones: -trimpath makes a package of one clone the same as that of another.
export GOFLAGS := $(GOFLAGS) -trimpath -buildvcs=false

# The race detector needs cgo, and go switches that off where there is no C compiler.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

# A sync takes no time in memory: where there is room, the short forms of the tests have their files there.
MEMORY := $(shell df -k --output=avail /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 4 * 1024 * 1024 { print "TMPDIR=/dev/shm" }')

.DEFAULT_GOAL := help
# How much of the long forms: make simulate SEEDS=100, make campaign KILLS=20, make mutants MUTANTS=Grace, make fuzz FUZZTIME=10s
SEEDS    ?= 10000
KILLS    ?= 200
RUNS     ?= 20000
MUTANTS  ?= all
FUZZTIME ?= 60s
ONE      := $(GO) test -count=1 -timeout 0 -v

.PHONY: axe-core bench bench-quick browser build campaign canary check clean demo disk docs fmt full fuzz help install long measure model mutants nightly plan race race-full screenshots simulate storms subjects systemd test vulnerabilities

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

# It builds nothing where "make build" has made the program: under sudo there is most often no Go.
install: $(if $(wildcard $(PROGRAM)),,build) ## the program, its unit, man pages, completion and examples, below PREFIX
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

# The packages that take longest begin first. make check vets all packages, so the tests do not.
ALL  := ./cmd/vaultd ./internal/test/simulation ./internal/test/readings ./...
TEST := gotestsum --format pkgname --format-hide-empty-pkg -- -vet=off -p 3 -parallel 14 -timeout 30m

test: ## the short form of every test
	$(MEMORY) $(TOOLS) $(TEST) -short $(ALL)
	cd bench && $(MEMORY) $(MODULE_TOOLS) $(TEST) -short ./...

long: ## in full, what the short form leaves out or samples: the tests that call kit.Long or kit.Sampled
	$(TOOLS) $(TEST) -count=1 -run '$(shell tools/longtests names)' $$(tools/longtests folders)
	cd bench && $(MODULE_TOOLS) $(TEST) -count=1 -run '$(shell tools/longtests names)' ./...

# Without the race detector: packages that start no goroutine and hold no lock, and the program, whose stories wait as a
# person would and are too slow with it. The daemon that it runs is in the worlds; make race-full has all packages.
RACELESS := $(addprefix vaultd/internal/,archive billing books chart expected ledger ledger/arrival page pdfapi present sanitize \
	statedir test/canary test/docs test/measure test/mutants) vaultd/cmd/vaultd

# Without it too: packages of others that calculate, at half of the time of a run. They must hold no sync.Map and no
# generic of sync/atomic: the linker takes one copy of each for all packages. make race-full has them with it.
UNWATCHED := $(patsubst %,-gcflags=%=-race=false,go.etcd.io/bbolt/... github.com/klauspost/compress/... modernc.org/sqlite/lib)

race: ## the short form of every test that has goroutines, with the race detector
	@[ -n "$(RACE)" ] || { echo "the race detector needs a C compiler, such as Debian's package gcc"; exit 1; }
	$(MEMORY) $(TOOLS) $(TEST) -race $(UNWATCHED) -short $$($(GO) list $(ALL) | grep -vxF $(addprefix -e ,$(RACELESS)))

full: ## every test in full, with its files on a disk
	TMPDIR=$${TMPDIR:-/tmp} $(TOOLS) $(TEST) -count=1 $(ALL)
	cd bench && $(MODULE_TOOLS) $(TEST) -count=1 ./...

race-full: ## every test in full with the race detector (an hour)
	$(TOOLS) $(TEST) -race -count=1 -parallel 6 -timeout 90m $(ALL)
	cd bench && $(MODULE_TOOLS) $(TEST) -race -count=1 -timeout 90m ./...

systemd: build ## vaultd on a Debian that systemd has booted, installed as the quick start has it (root; 5 min)
	@tools/systemd

vulnerabilities: ## known vulnerabilities in what the program calls of its dependencies
	@tools/vulnerabilities

nightly: ## all suites in full, one line each; a run that was cut resumes: before each release (hours)
	@tools/nightly

# Where these tests have their files in memory, they never meet a real sync, rename or mount.
disk: ## the packages that keep files, with their files on a disk
	TMPDIR=$${TMPDIR:-/tmp} $(TOOLS) $(TEST) -short -count=1 $(addprefix ./internal/,custody drop durable ledger/boltledger spool)

check: ## formatting, size and text, and the checks of tools/lint
	@bad=$$(gofmt -l cmd internal bench browser tools); if [ -n "$$bad" ]; then echo "gofmt would change:"; echo "$$bad"; exit 1; fi
	$(GO) run ./internal/test/measure -check
	$(GO) -C tools test -vet=off ./lint
	$(GO) -C tools build -trimpath -o lint/lint ./lint
	@set -e; for module in . bench browser; do \
		echo "tools/lint in $$module"; $(GO) -C $$module vet -vettool=$(CURDIR)/tools/lint/lint -whole ./...; done

browser: axe-core ## the pages in a real Chromium, with axe-core: needs Debian's chromium and npm
	$(GO) -C browser test -count=1 -v -timeout 10m ./...

screenshots: axe-core ## the pictures of the pages anew, in docs/img: made by hand, because they show times
	mkdir -p docs/img
	VAULTD_SCREENSHOTS=$(CURDIR)/docs/img $(GO) -C browser test -count=1 -v -run '^TestScreenshots$$' .

axe-core:
	@npm ci --prefix browser --ignore-scripts --no-audit --no-fund --loglevel=error || echo "axe-core could not be installed: npm is missing, or reaches no registry"

simulate: ## simulated years with faults, from SEEDS seeds
	SEEDS=$(SEEDS) $(ONE) -run '^TestSimulation$$' ./internal/test/simulation

campaign: ## the real program, killed KILLS times under load
	KILLS=$(KILLS) $(ONE) -run '^TestCampaign$$' ./internal/test/campaign

storms: ## bursts and hostile folders in their full numbers: up to a million files
	VAULTD_LONG=1 $(ONE) -run '^TestBurst_I22_NoneIsLost$$' ./internal/watch
	VAULTD_LONG=1 $(ONE) -run '^TestHostile_I19_I21_I23$$' ./cmd/vaultd

plan: ## how much is registered at once, on RUNS simulated lines: make plan RUNS=1000000 takes hours
	RUNS=$(RUNS) $(ONE) -run '^TestPlan_I6_SimulatedLines$$' ./internal/window

model: ## every order of events, to the end of a larger world (minutes, and memory)
	VAULTD_MODEL=2 VAULTD_MODEL_STATES=1500000 $(ONE) -run '^TestModel_Promises$$' ./internal/ledger

mutants: axe-core ## known mistakes, planted one by one: a test must find each
	$(MEMORY) MUTANTS='$(MUTANTS)' $(ONE) -run '^TestMutants$$' ./internal/test/mutants

canary: ## all tests, and a search for secrets in whatever they wrote
	VAULTD_CANARY=1 $(ONE) -run '^TestSuite_I7' ./internal/test/canary

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

measure: ## size, text and ties of the repository, by package
	@$(GO) run ./internal/test/measure

subjects: ## the form of commit subjects: package: what changes
	@$(GO) run ./internal/test/measure -subjects

fmt: ## format all Go files
	gofmt -w cmd internal bench browser tools

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
