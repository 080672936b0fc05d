package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

const (
	// waitingDocuments are under way in the ledger of the row about a long queue.
	waitingDocuments = 500_000
	// droppedFolders wait for a service that is away.
	droppedFolders = 200_000
)

// memoryRows count the anonymous memory of vaultd at its highest: with large files and with many small ones, on an empty
// ledger and on a large one, and with a long queue. The pages of the ledger that are mapped belong to the kernel, which
// takes them back when it needs room; they are told beside it.
func (b *bench) memoryRows() []row {
	large, waiting, dropped := b.scaleForQuick(largeLedger), b.scaleForQuick(waitingDocuments), b.scaleForQuick(droppedFolders)
	counts := []count{
		{"peak RssAnon, MiB", peakMiB, "<= 64", atMost(64)},
		{"peak RSS with mapped pages, MiB", func(s sample) float64 { return s.figureNamed("peak_rss") / (1 << 20) }, "told", nil},
		{"documents a second", sample.rate, "told", nil},
	}
	of := func(id, title string, run func(context.Context, string) (sample, error)) row {
		return row{ID: "memory-" + id, Goal: "G9", Title: "memory: " + title, A: side{"vaultd", run}, Pairs: 1, Counts: counts}
	}
	return []row{
		of("large", "files of up to 65 MB, set L, empty ledger", b.wholeRun(setLarge, false)),
		of("tiny", "tiny documents, set T, empty ledger", b.wholeRun(setTiny, false)),
		of("large-"+short(large), "files of up to 65 MB on a ledger of "+short(large), b.memoryOn(setLarge, large, 0)),
		of("tiny-"+short(large), "tiny documents on a ledger of "+short(large), b.memoryOn(setTiny, large, 0)),
		of("queue-"+short(waiting), fmt.Sprintf("files of up to 65 MB, set L, while %s documents wait for the service's word", short(waiting)), b.memoryOn(setLarge, waiting, waiting)),
		of("backlog-"+short(dropped), fmt.Sprintf("%s folders dropped while the service is away", short(dropped)), b.backlog(dropped)),
	}
}

// memoryOn lets vaultd take a set on a filled ledger, from the moment that it starts: the check of the ledger runs beside
// the work.
func (b *bench) memoryOn(set string, docs, open int) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		filled, err := b.ledger(ctx, docs, open)
		if err != nil {
			return s, err
		}
		state := filepath.Join(dir, "state")
		if err := copyState(filled, state); err != nil {
			return s, err
		}
		o := runOptions{service: fakeOptions{TLS: true, Listen: ledgerAddress, Busy: open > 0}, setup: setup{State: state}, alsoChecked: true, untilStored: open > 0}
		return b.run(ctx, dir, set, o)
	}
}

// backlog drops very many folders while the service is away and waits until all are taken: the ledger holds them all, and
// the spool as many packages as may wait.
func (b *bench) backlog(n int) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		folders, err := b.crowd(ctx, n)
		if err != nil {
			return s, err
		}
		away, err := freePort()
		if err != nil {
			return s, err
		}
		return b.runAmongFolders(ctx, dir, folders, setup{URL: "http://" + away, Rescan: 5 * time.Second}, func(p *process, drop string) (s sample, err error) {
			if err := folders.moveToDrop(drop); err != nil {
				return s, err
			}
			err = p.awaitUntil(ctx, time.Second, "all folders to be taken", func() (bool, error) {
				left, err := folders.countLeft(drop)
				return left == 0, err
			})
			if err != nil {
				return s, err
			}
			s = sample{Wall: time.Since(p.began), Docs: n, In: folders.bytes}
			return s, p.fillSample(&s, beginning{})
		})
	}
}

// crowd is a set of very many folders with a few hundred bytes each, which are complete when they come.
func (b *bench) crowd(ctx context.Context, n int) (*shelf, error) {
	return wholeShelf(func() (dir string, docs int, err error) {
		dir, err = b.makeOnce(ctx, fmt.Sprintf("crowd-%d-seed%d", n, b.seed), func(ctx context.Context, dir string) error {
			r := recipe{docs: n, xml: span{1000, 1500}}
			return r.writeSet(ctx, "crowd", b.seed, dir)
		})
		return dir, n, err
	})
}
