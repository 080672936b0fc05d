package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

const (
	slowSync     = 5 * time.Millisecond  // what a sync takes on a disk of the slower kind; a commit has two
	gatherWindow = 25 * time.Millisecond // the least time between two commits, as the daemon has it
)

// ledgerRows measure the ledger alone, on this disk and on one whose syncs are slow. The writers of the first rows wait
// for each change, and it commits as soon as the disk is done: the worst that can be done with it. In production nobody
// waits, a document goes on when its change is durable, and commits keep a distance: these are the rows ledger-flow, where
// documents come at a steady rate that both disks bear, and ledger-full, where more wait than either takes.
func (b *bench) ledgerRows() []row {
	var rows []row
	for _, writers := range []int{1, 16, 64, 256} {
		rows = append(rows, row{ID: fmt.Sprintf("ledger-%d", writers), Goal: "R4",
			Title: fmt.Sprintf("%d writers, each waiting for each of the nine changes of a document: syncs of 5 ms against this disk", writers),
			A:     side{"5 ms syncs", b.writersRun(writers, slowSync)}, B: side{"this disk", b.writersRun(writers, 0)}, Pairs: b.fewPairs(),
			Ratios: []ratio{{"documents a second", rateRatio, "told", nil}},
			Counts: []count{{"changes a second on the slow disk", figureOfRow("changes_per_s"), "told", nil}, {"ledger syncs a document", syncsPerDoc, "told", nil}},
		})
	}
	steady := row{ID: "ledger-flow", Goal: "G3 R4",
		Title: fmt.Sprintf("%d documents a second go their way, no one waiting for another: syncs of 5 ms against this disk", offered),
		A:     side{"5 ms syncs", b.flowRun(slowSync, (*flow).steady)}, B: side{"this disk", b.flowRun(0, (*flow).steady)}, Warmup: 1,
		Ratios: []ratio{{"CPU", cpuRatio, "told", nil}},
		Counts: []count{
			{"documents a second on the slow disk", sample.rate, "told", nil},
			{"ledger syncs a document, at 1,000 a second or more", syncsAtPace, "<= 0.1", atMost(0.1)},
			{"commits a gather window", func(s sample) float64 { return quotient(float64(s.Commits), float64(s.Wall)/float64(gatherWindow)) }, "<= 2", atMost(2)},
			{"ms of a document on the slow disk", figureOfRow("life_ms"), "told", nil},
		}}
	full := row{ID: "ledger-full", Goal: "R4",
		Title: fmt.Sprintf("%d documents on their way at any time, as fast as the ledger takes them: syncs of 5 ms against this disk", crowded),
		A:     side{"5 ms syncs", b.flowRun(slowSync, (*flow).full)}, B: side{"this disk", b.flowRun(0, (*flow).full)}, Warmup: 1,
		Ratios: []ratio{
			{"documents a second", rateRatio, "told", nil},
			{"CPU", cpuRatio, "told", nil},
		},
		Counts: []count{
			{"documents a second on the slow disk", sample.rate, "told", nil},
			{"ledger syncs a document", syncsPerDoc, "told", nil},
			{"changes a commit", func(s sample) float64 {
				return quotient(s.figureNamed("changes_per_s")*s.Wall.Seconds(), float64(s.Commits))
			}, "told", nil},
			{"ms of a document on the slow disk", figureOfRow("life_ms"), "told", nil},
		}}
	return append(rows, steady, full)
}

const (
	offered = 1500 // documents a second that come to the ledger of ledger-flow, more than a goal asks for
	crowded = 2000 // documents on their way in that of ledger-full, as many as vaultd lets wait for one vault
)

// slow makes every commit of a ledger wait as if each of its two syncs took so long.
func slow(sync time.Duration) func(string) error {
	if sync == 0 {
		return nil
	}
	return func(string) error { // called before and after the commit
		t := time.NewTimer(sync)
		defer t.Stop()
		<-t.C
		return nil
	}
}

// onLedger measures work on a ledger of its own.
func onLedger(dir string, gather, sync time.Duration, work func(*boltledger.Ledger) error) (s sample, err error) {
	if err := createLedger(dir); err != nil {
		return s, err
	}
	l, err := boltledger.Open(boltledger.Config{Dir: dir, CommitInterval: gather, Fault: slow(sync)})
	if err != nil {
		return s, err
	}
	s, err = measureOwnWork(func() error { return work(l) })
	var changes uint64
	s.Commits, changes = l.CommitCounts()
	s.Syncs = l.SyncCount()
	s.noteFigure("changes_per_s", quotient(float64(changes), s.Wall.Seconds()))
	return s, errors.Join(err, l.Close())
}

// writersRun lets so many writers bring documents through their lives, each waiting for the disk at every change.
func (b *bench) writersRun(writers int, sync time.Duration) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (sample, error) {
		each := max(b.scaleForQuick(40), 10)
		all := newLives(time.Now()).take(writers * each)
		s, err := onLedger(dir, 0, sync, func(l *boltledger.Ledger) error {
			g, ctx := errgroup.WithContext(ctx)
			for w := range writers {
				g.Go(func() error {
					for _, f := range all[w*each : (w+1)*each] {
						if err := f.apply(ctx, l); err != nil {
							return err
						}
					}
					return nil
				})
			}
			return g.Wait()
		})
		s.Docs = len(all)
		return s, err
	}
}

// apply brings a life to its end, change by change.
func (f *life) apply(ctx context.Context, l *boltledger.Ledger) error {
	rev := uint32(0)
	for n := range f.changes {
		rs, err := l.Apply(ctx, f.change(n, rev))
		if err != nil {
			return err
		}
		if rs[0].Err != nil {
			return rs[0].Err
		}
		rev = rs[0].Entry.Rev
	}
	return nil
}

// flowRun brings documents to a ledger in one of two manners. Each goes on as soon as its last change is durable.
func (b *bench) flowRun(sync time.Duration, bring func(*flow, context.Context, *boltledger.Ledger, []*life) error) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (sample, error) {
		all := newLives(time.Now()).take(max(b.scaleForQuick(10*offered), 3*offered))
		f := newFlow(len(all))
		s, err := onLedger(dir, gatherWindow, sync, func(l *boltledger.Ledger) error { return bring(f, ctx, l, all) })
		s.Docs = len(all)
		s.noteFigure("life_ms", quotient(float64(f.lived.Microseconds())/1000, float64(len(all))))
		return s, err
	}
}

// flow is many documents on their way at once.
type flow struct {
	left  int           // documents; this and the next three are used by the committer alone until done
	queue []*life       // each of which begins when another one ends
	err   error         // of all of them
	lived time.Duration // all lives together
	done  chan struct{}
}

func newFlow(docs int) *flow { return &flow{left: docs, done: make(chan struct{})} }

// full keeps so many documents on their way that the ledger never waits for one.
func (f *flow) full(ctx context.Context, l *boltledger.Ledger, all []*life) error {
	return f.keep(ctx, l, all, crowded)
}

// keep lets so many documents begin, and another one whenever one ends.
func (f *flow) keep(ctx context.Context, l *boltledger.Ledger, all []*life, atOnce int) error {
	first := all[:min(atOnce, len(all))]
	f.queue = all[len(first):]
	for _, doc := range first {
		f.step(l, doc, 0, 0, time.Now())
	}
	return f.wait(ctx)
}

// steady brings documents at a steady rate.
func (f *flow) steady(ctx context.Context, l *boltledger.Ledger, all []*life) error {
	const every = 5 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	began := time.Now()
	for sent := 0; sent < len(all); {
		due := min(int(time.Since(began).Seconds()*offered)+1, len(all))
		for ; sent < due; sent++ {
			f.step(l, all[sent], 0, 0, time.Now())
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return f.wait(ctx)
}

func (f *flow) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-f.done:
		return f.err
	}
}

// step submits the n-th change of a life. Its answer comes on the committer's goroutine, which submits the next.
func (f *flow) step(l *boltledger.Ledger, doc *life, n int, rev uint32, born time.Time) {
	l.Submit([]ledger.Change{doc.change(n, rev)}, func(rs []ledger.Result) {
		if rs[0].Err == nil && n+1 < len(doc.changes) {
			f.step(l, doc, n+1, rs[0].Entry.Rev, born)
			return
		}
		f.err = errors.Join(f.err, rs[0].Err)
		f.lived += time.Since(born)
		if len(f.queue) > 0 {
			next := f.queue[0]
			f.queue = f.queue[1:]
			f.step(l, next, 0, 0, time.Now())
		}
		if f.left--; f.left == 0 {
			close(f.done)
		}
	})
}
