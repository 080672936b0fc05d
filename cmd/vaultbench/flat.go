package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// ledgerAddress is where filled ledgers think that the service is. A ledger is bound to its service for ever, so what
// works on one of them needs the stand-in at this address.
const ledgerAddress = "127.0.0.1:28971"

// The sizes of filled ledgers. A quick bench has a tenth of each.
const (
	smallLedger = 10_000
	largeLedger = 1_000_000
)

// flatRows ask whether a document costs more on a large ledger than on a small one: vaultd takes the same number of new
// documents on both, in turn.
func (b *bench) flatRows() []row {
	small, large := b.of(smallLedger), b.of(largeLedger)
	var rows []row
	for _, docs := range []int{b.of(100_000), large} {
		rows = append(rows, row{ID: fmt.Sprintf("flat-%s", short(docs)), Goal: "G7",
			Title:  fmt.Sprintf("new documents on a ledger of %s and on one of %s", short(docs), short(small)),
			A:      side{short(docs) + " documents", b.onLedger(docs)},
			B:      side{short(small) + " documents", b.onLedger(small)},
			Warmup: 1, Pairs: b.costly(),
			Ratios: []ratio{
				{"CPU a document", func(a, b sample) float64 { return quotient(cpuPerDoc(a), cpuPerDoc(b)) }, "<= 1.25", atMost(1.25)},
				{"wall a document", func(a, b sample) float64 { return quotient(b.rate(), a.rate()) }, "<= 1.05", atMost(1.05)},
				{"peak RssAnon", func(a, b sample) float64 { return quotient(float64(a.PeakAnon), float64(b.PeakAnon)) }, "told", nil},
			},
			Counts: []count{
				{"documents a second", sample.rate, "told", nil},
				{"ledger, MB", more("ledger_mb"), "told", nil},
				{"peak RssAnon, MiB", peakMiB, "<= 64", atMost(64)},
			}})
	}
	return rows
}

func cpuPerDoc(s sample) float64 { return quotient(s.CPU.Seconds(), float64(s.Docs)) }

// short writes a round number as people say it.
func short(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1000 && n%1000 == 0:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

// onLedger lets vaultd archive tiny documents, new ones each time, on a ledger that holds so many already.
func (b *bench) onLedger(docs int) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		state, err := b.workingLedger(ctx, docs, 0, dir)
		if err != nil {
			return s, err
		}
		fresh := filepath.Join(dir, "set")
		tiny := recipes()[setTiny]
		tiny.docs = b.of(10_000)
		seed := uint64(time.Now().UnixNano()) // never again: the ledger would know the documents
		if err := errors.Join(os.Mkdir(fresh, 0o700), tiny.generate(ctx, setTiny, seed, fresh)); err != nil {
			return s, err
		}
		folders, err := openShelf(fresh)
		if err != nil {
			return s, err
		}
		o := runOptions{service: fakeOptions{TLS: true, Listen: ledgerAddress}, setup: setup{State: state}, checked: true}
		if s, err = b.runFolders(ctx, dir, folders, o); err != nil {
			return s, err
		}
		info, err := os.Stat(filepath.Join(state, "ledger.db"))
		if err == nil {
			s.note("ledger_mb", float64(info.Size())/1e6)
		}
		return s, err
	}
}

// workingLedger is a copy of a filled ledger that a run may write to: its own, or where that would take long, one that
// all runs share. What they add is little then.
func (b *bench) workingLedger(ctx context.Context, docs, open int, dir string) (string, error) {
	filled, err := b.ledger(ctx, docs, open)
	if err != nil {
		return "", err
	}
	if docs < 500_000 {
		state := filepath.Join(dir, "state")
		return state, copyState(filled, state)
	}
	return b.once(ctx, fmt.Sprintf("ledger-%d-%d-working", docs, open), func(_ context.Context, dir string) error { return copyState(filled, dir) })
}

// copyState copies a state directory that holds nothing but a ledger, and has it on the disk.
func copyState(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	for _, e := range entries {
		if e.Type().IsRegular() {
			err = errors.Join(err, copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
		}
	}
	return err
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() // read-only
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
