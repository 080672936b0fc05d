package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"vaultd/internal/catalog"
	"vaultd/internal/ledger/boltledger"
)

// askRows measure how long people wait for an answer, with the program as they call it and without a daemon, and what the
// catalog costs that gives the answer.
func (b *bench) askRows() []row {
	small, large := b.scaleForQuick(smallLedger), b.scaleForQuick(largeLedger)
	var rows []row
	for _, x := range []struct{ command, of string }{{"find", ", of a folder in the middle"}, {"show", ", of a folder in the middle"}, {"status", ""}} {
		rows = append(rows, row{ID: "ask-" + x.command, Goal: "ask", Title: fmt.Sprintf("vaultd %s%s: ledger of %s and of %s", x.command, x.of, short(large), short(small)),
			A: side{short(large) + " documents", b.ask(large, questionsOf(large)[x.command]...)}, B: side{short(small) + " documents", b.ask(small, questionsOf(small)[x.command]...)},
			Warmup: 1, Pairs: b.manyPairs(), Ratios: []ratio{{"wall", wallRatio, "told", nil}, {"CPU", cpuRatio, "told", nil}},
			Counts: []count{{"time to the answer, ms", answerMillis, "<= 100", atMost(100)}}})
	}
	rows = append(rows, row{ID: "ask-list", Goal: "ask", Title: fmt.Sprintf("vaultd list, the first hundred by folder, of %s documents: with the catalog and without", short(large)),
		A: side{"catalog", b.ask(large, questionsOf(large)["list"]...)}, B: side{"no catalog", b.askLedgerAlone(large, questionsOf(large)["list"]...)}, Pairs: b.costlyPairs(),
		Ratios: []ratio{{"wall", wallRatio, "told", nil}, {"CPU", cpuRatio, "told", nil}}, Counts: []count{{"time to the answer, ms", answerMillis, "told", nil}}})
	rows = append(rows, b.daemonRow("status", large, small), b.daemonRow("find", large, small), b.catalogCost())
	rows = append(rows, b.pageRow(large, small), b.auditRow(b.scaleForQuick(verifiedLedger)), b.auditRow(large), b.booksRow(large))
	return append(rows, row{ID: "catalog-" + short(large), Goal: "ask", Title: fmt.Sprintf("the catalog of a ledger of %s documents is made anew", short(large)),
		A: side{"catalog", b.makeCatalog(large)}, Pairs: b.costlyPairs(),
		Counts: []count{
			{"documents a second", func(s sample) float64 { return s.rate() }, "told", nil},
			{"bytes a document", figureOfRow("bytes_per_doc"), "<= 350", atMost(350)},
			{"CPU a document, µs", func(s sample) float64 { return cpuPerDoc(s) * 1e6 }, "told", nil},
		}})
}

// askedLedger returns a filled ledger with its catalog, made the first time that it is asked for.
func (b *bench) askedLedger(ctx context.Context, docs int) (string, error) {
	return b.makeOnce(ctx, fmt.Sprintf("asked-%d", docs), func(ctx context.Context, dir string) error {
		filled, err := b.ledger(ctx, docs, 0)
		if err == nil {
			err = copyState(filled, dir)
		}
		if err != nil {
			return err
		}
		return fillCatalog(ctx, dir, dir)
	})
}

// fillCatalog makes the catalog of the ledger in state, in dir.
func fillCatalog(ctx context.Context, state, dir string) (err error) {
	l, err := boltledger.Open(boltledger.Config{Dir: state})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	c := catalog.New(catalog.Config{StateDir: dir, Ledger: l, Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	defer func() { stop(); <-done }()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		switch s := c.Status(); {
		case s.Fault != "":
			return errors.New(s.Fault)
		case s.Describe() == "":
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
	}
}

// questionsOf are what is asked of a filled ledger, by the command.
func questionsOf(docs int) map[string][]string {
	folder := folderInTheMiddle(docs)
	return map[string][]string{"find": {"find", folder}, "show": {"show", folder}, "status": {"status"}, "list": {"list", "--sort", "folder"}}
}

func folderInTheMiddle(docs int) string { return fmt.Sprintf("Rechnung %07d", docs/2) }

func answerMillis(s sample) float64 { return float64(s.Wall.Microseconds()) / 1000 }

// ask asks a filled ledger with its catalog.
func (b *bench) ask(docs int, args ...string) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		state, err := b.askedLedger(ctx, docs)
		if err != nil {
			return s, err
		}
		return b.askState(ctx, dir, state, docs, args)
	}
}

// askLedgerAlone asks a filled ledger that has no catalog.
func (b *bench) askLedgerAlone(docs int, args ...string) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		state, err := b.ledger(ctx, docs, 0)
		if err != nil {
			return s, err
		}
		return b.askState(ctx, dir, state, docs, args)
	}
}

func (b *bench) askState(ctx context.Context, dir, state string, docs int, args []string) (s sample, err error) {
	in, err := b.installBeside(ctx, dir, setup{State: state})
	if err != nil {
		return s, err
	}
	s, err = in.measureCommand(ctx, args...)
	s.Docs = docs
	return s, err
}

// installBeside installs vaultd in dir with a state directory of a filled ledger. Nothing waits to be sent.
func (b *bench) installBeside(ctx context.Context, dir string, s setup) (*installation, error) {
	drop := filepath.Join(dir, "drop")
	if err := os.Mkdir(drop, 0o770); err != nil {
		return nil, err
	}
	s.URL, s.Drops, s.Calm = "https://"+ledgerAddress, []string{drop}, true
	return b.installVaultd(ctx, dir, s)
}

func (b *bench) makeCatalog(docs int) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		state, err := b.askedLedger(ctx, docs)
		if err != nil {
			return s, err
		}
		before, began := ownCPU(), time.Now()
		if err := fillCatalog(ctx, state, dir); err != nil {
			return s, err
		}
		s.Wall, s.CPU, s.Docs = time.Since(began), ownCPU()-before, docs
		info, err := os.Stat(filepath.Join(dir, catalog.FileName))
		if err != nil {
			return s, err
		}
		s.noteFigure("bytes_per_doc", float64(info.Size())/float64(docs))
		return s, nil
	}
}
