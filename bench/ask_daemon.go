package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// daemonRow measures a command beside a running daemon, which answers it.
func (b *bench) daemonRow(command string, large, small int) row {
	return row{ID: "ask-" + command + "-daemon", Goal: "ask", Title: fmt.Sprintf("vaultd %s beside a running daemon: ledger of %s and of %s", command, short(large), short(small)),
		A: side{short(large) + " documents", b.askDaemon(large, command)}, B: side{short(small) + " documents", b.askDaemon(small, command)}, Pairs: b.costlyPairs(),
		Ratios: []ratio{{"wall", wallRatio, "told", nil}},
		Counts: []count{{"time to the answer, median, ms", answerMillis, "<= 100", atMost(100)}, {"the first, ms", figureOfRow("first_ms"), "told", nil}}}
}

// askDaemon asks often, beside one daemon; the median counts.
func (b *bench) askDaemon(docs int, command string) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		state, err := b.askedLedger(ctx, docs)
		if err != nil {
			return s, err
		}
		in, err := b.installBeside(ctx, dir, setup{State: state})
		if err != nil {
			return s, err
		}
		p, err := in.startDaemon(ctx)
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		if _, err := p.awaitReady(ctx); err != nil {
			return s, err
		}
		has := folderInTheMiddle(docs)
		if command == "status" {
			has = fmt.Sprint(docs)[:1]
		}
		took := make([]time.Duration, pageLooks)
		for i := range took {
			began := time.Now()
			out, err := in.runCommand(ctx, questionsOf(docs)[command]...)
			took[i] = time.Since(began)
			if err == nil && !bytes.Contains(out, []byte(has)) {
				err = fmt.Errorf("vaultd %s: %q is not in its answer", command, has)
			}
			if err != nil {
				return s, err
			}
		}
		s.noteFigure("first_ms", float64(took[0].Microseconds())/1000)
		slices.Sort(took)
		s.Docs, s.Wall = docs, took[pageLooks/2]
		return s, nil
	}
}

// catalogCost compares the whole path with a catalog and without one.
func (b *bench) catalogCost() row {
	run := func(noCatalog bool) func(context.Context, string) (sample, error) {
		return func(ctx context.Context, dir string) (sample, error) {
			return b.run(ctx, dir, setTiny, runOptions{service: fakeOptions{TLS: true}, setup: setup{NoCatalog: noCatalog}, untilStored: true})
		}
	}
	return row{ID: "catalog-" + setTiny, Goal: "ask", Title: "the whole path, set " + setTiny + ", with the catalog and without",
		A: side{"with the catalog", run(false)}, B: side{"without", run(true)}, Warmup: 1,
		Ratios: []ratio{
			{"CPU", cpuRatio, "told", nil},
			// Those of SQLite, at checkpoints, are not counted: a commit of the catalog syncs nothing.
			{"ledger syncs a document", func(a, b sample) float64 { return quotient(syncsPerDoc(a), syncsPerDoc(b)) }, "<= 1.05", atMost(1.05)},
			{"wall", wallRatio, "told", nil},
		}}
}

// preventCatalog lets a folder that is not empty lie where the log of the catalog would be. vaultd says that it stopped, and works on.
func (in *installation) preventCatalog() error {
	return os.MkdirAll(filepath.Join(in.state, "catalog.db-wal", "in the way"), 0o700)
}
