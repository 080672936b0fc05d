package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// indexRows compare the archive's index with a large ledger, and set beside it what reading that index costs alone. Both
// sides are the program as people call it.
func (b *bench) indexRows() []row {
	docs := b.scaleForQuick(largeLedger)
	of := func(id, title string, rewritten bool, want string, holds func(float64) bool) row {
		return row{ID: id + "-" + short(docs), Goal: "index", Title: fmt.Sprintf("an index of %s documents, %s", short(docs), title),
			A:     side{"vaultd reconcile", b.askIndex(docs, rewritten, "reconcile")},
			B:     side{"vaultd index", b.askIndex(docs, rewritten, "index")},
			Pairs: b.costlyPairs(),
			Ratios: []ratio{
				{"CPU", cpuRatio, want, holds},
				{"wall", wallRatio, "told", nil},
			},
			Counts: []count{
				{"peak RssAnon, MiB", peakMiB, "<= 128", atMost(128)},
				{"CPU a document, µs", func(s sample) float64 { return cpuPerDoc(s) * 1e6 }, "told", nil},
			}}
	}
	return []row{
		of("index", "each as it was sent", false, "<= 2", atMost(2)),
		of("index-rewritten", "each amount written otherwise", true, "told", nil),
	}
}

// askIndex runs one command of vaultd that reads the whole index, on a filled ledger without a daemon. It must end well: a
// single difference would be another exit code.
func (b *bench) askIndex(docs int, rewritten bool, command string) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		svc, err := b.serveIn(ctx, dir, fakeOptions{TLS: true, Listen: ledgerAddress, Index: docs, Rewritten: rewritten})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, svc.Stop()) }()
		state, err := b.workingLedger(ctx, docs, 0, dir)
		if err != nil {
			return s, err
		}
		drop := filepath.Join(dir, "drop")
		if err := os.Mkdir(drop, 0o770); err != nil {
			return s, err
		}
		in, err := b.installVaultd(ctx, dir, setup{URL: svc.URL, CA: svc.CA, Drops: []string{drop}, State: state, Calm: true})
		if err != nil {
			return s, err
		}
		var said bytes.Buffer
		cmd := child(ctx, in.bin, "--config", in.configPath(), command)
		cmd.Stdout, cmd.Stderr = &said, &said
		began := time.Now()
		if err := cmd.Start(); err != nil {
			return s, fmt.Errorf("start vaultd: %w", err)
		}
		g := watchProcess(cmd.Process.Pid)
		err = cmd.Wait()
		g.stop()
		if err != nil {
			return s, fmt.Errorf("vaultd %s: %w: %s", command, err, lastLines(said.Bytes()))
		}
		s.Wall, s.Docs = time.Since(began), docs
		s.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		_, s.PeakAnon, _ = g.readMemory()
		return s, nil
	}
}
