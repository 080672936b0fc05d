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

// flatRows ask whether a document costs more on a large ledger than on a small one: a vaultd on each takes the same number of
// new documents, in turn.
func (b *bench) flatRows() []row {
	small, large := b.scaleForQuick(smallLedger), b.scaleForQuick(largeLedger)
	var rows []row
	for _, docs := range []int{b.scaleForQuick(100_000), large} {
		both := &residents{b: b, daemons: map[int]*resident{}}
		rows = append(rows, row{ID: fmt.Sprintf("flat-%s", short(docs)), Goal: "G7",
			Title:  fmt.Sprintf("new documents on a ledger of %s and on one of %s", short(docs), short(small)),
			A:      side{short(docs) + " documents", both.take(docs)},
			B:      side{short(small) + " documents", both.take(small)},
			End:    both.leave,
			Warmup: 1, Pairs: b.costlyPairs(),
			Ratios: []ratio{
				{"CPU a document", func(a, b sample) float64 { return quotient(cpuPerDoc(a), cpuPerDoc(b)) }, "<= 1.05", atMost(1.05)},
				{"wall a document", func(a, b sample) float64 { return quotient(b.rate(), a.rate()) }, "<= 1.05", atMost(1.05)},
				{"peak RssAnon", func(a, b sample) float64 { return quotient(float64(a.PeakAnon), float64(b.PeakAnon)) }, "told", nil},
			},
			Counts: []count{
				{"documents a second", sample.rate, "told", nil},
				{"ledger, MB", figureOfRow("ledger_mb"), "told", nil},
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

// residents are the daemons of one row, each on a filled ledger, with one stand-in for all. They stay between the runs: a
// large ledger is looked through for minutes after each start, which is not what is measured.
type residents struct {
	b       *bench
	dir     string
	tidy    func() error
	svc     *fake
	daemons map[int]*resident // by what their ledgers hold
}

type resident struct {
	p           *process
	drop, state string
}

// on returns the daemon on a ledger of that size, which is started the first time that it is asked for.
func (r *residents) on(ctx context.Context, docs int) (_ *resident, err error) {
	if at := r.daemons[docs]; at != nil {
		return at, nil
	}
	if r.svc == nil {
		if r.dir, r.tidy, err = r.b.makeRunDir("residents"); err != nil {
			return nil, err
		}
		if r.svc, err = r.b.serveIn(ctx, r.dir, fakeOptions{TLS: true, Listen: ledgerAddress}); err != nil {
			return nil, err
		}
	}
	own := filepath.Join(r.dir, short(docs))
	at := &resident{drop: filepath.Join(own, "drop")}
	if err = os.MkdirAll(at.drop, 0o770); err == nil {
		at.state, err = r.b.workingLedger(ctx, docs, 0, own)
	}
	if err != nil {
		return nil, err
	}
	in, err := r.b.installVaultd(ctx, own, setup{URL: r.svc.URL, CA: r.svc.CA, Drops: []string{at.drop}, State: at.state})
	if err != nil {
		return nil, err
	}
	if at.p, err = in.startDaemon(ctx); err != nil {
		return nil, err
	}
	r.daemons[docs] = at
	_, err = at.p.awaitChecked(ctx)
	return at, err
}

// take lets the daemon on a ledger of that size archive tiny documents, new ones each time.
func (r *residents) take(docs int) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		tiny := recipes()[setTiny]
		tiny.docs = r.b.scaleForQuick(10_000)
		seed := uint64(time.Now().UnixNano()) // never again: the ledger would know the documents
		if err := tiny.writeSet(ctx, setTiny, seed, dir); err != nil {
			return s, err
		}
		folders, err := openShelf(dir)
		if err != nil {
			return s, err
		}
		at, err := r.on(ctx, docs)
		if err != nil {
			return s, err
		}
		begin, err := at.p.beginning()
		if err != nil {
			return s, err
		}
		at.p.gauge.resetPeak()
		defer func() { err = errors.Join(err, folders.takeBack(at.drop)) }()
		if err := folders.moveToDrop(at.drop); err != nil {
			return s, err
		}
		if err := at.p.awaitKept(ctx, at.drop, folders); err != nil {
			return s, err
		}
		s.Wall, s.Docs, s.In = time.Since(begin.at), len(folders.names), folders.bytes
		info, err := os.Stat(filepath.Join(at.state, "ledger.db"))
		if err != nil {
			return s, err
		}
		s.noteFigure("ledger_mb", float64(info.Size())/1e6)
		return s, at.p.fillSample(&s, begin)
	}
}

// leave ends them all.
func (r *residents) leave() (err error) {
	if r.svc == nil {
		return nil
	}
	for _, at := range r.daemons {
		err = errors.Join(err, at.p.stop())
	}
	return errors.Join(err, r.svc.Stop(), r.tidy())
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
	return b.makeOnce(ctx, fmt.Sprintf("ledger-%d-%d-working", docs, open), func(_ context.Context, dir string) error { return copyState(filled, dir) })
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
