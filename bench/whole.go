package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// wholeRows compare vaultd as it is installed with the parts of its work done alone, and with the same path without a
// ledger: look into each folder, make its ZIP, read it back, register it, send it.
//
// Both sides end when the last ZIP is stored. What follows, the question what became of it, the receipt and the move to
// _archived, is in the rows named life-….
func (b *bench) wholeRows() []row {
	var rows []row
	for _, set := range []string{setNormal, setTiny} {
		rows = append(rows,
			row{ID: "whole-" + set, Goal: "G1 G2 G3", Title: "the whole path, set " + set + ": vaultd against its parts, and against the same path without a ledger",
				A: side{"vaultd", b.wholeRun(set, true)}, B: side{"without a ledger", b.bareRun(set)}, Warmup: 1,
				Ratios: []ratio{
					{"CPU, of the parts alone", func(a, b sample) float64 { return quotient(a.CPU.Seconds(), b.figureNamed("parts_cpu_s")) }, "<= 1.10", atMost(1.10)},
					{"wall, of the path without a ledger", wallRatio, wallWant(set), atMost(wallLimit(set))},
					{"CPU, of the path without a ledger", cpuRatio, "told", nil},
					{"bytes of ZIPs", sizeRatio, "= 1", within(0.999, 1.001)},
				},
				Counts: []count{
					{"ledger syncs a document, at 1,000 a second or more", syncsAtPace, "<= 0.1", atMost(0.1)},
					syncsAsTheyWere(set),
					{"commits a document", commitsPerDoc, "told", nil},
					notedPerDoc("syncs of other files a document", "file_syncs"),
					notedPerDoc("syncs of directories a document", "dir_syncs"),
					{"registration calls", figureOfRow("batches"), "told", nil},
					{"documents a second", sample.rate, "told", nil},
					{"sent twice", figureOfRow("duplicates"), "0", atMost(0)},
					{"peak RssAnon, MiB", peakMiB, "<= 64", atMost(64)},
				}},
			row{ID: "life-" + set, Goal: "G3", Title: "from the drop folder to _archived, with receipts, set " + set,
				A: side{"vaultd", b.wholeRun(set, false)}, Counts: lifeCounts(set)})
	}
	slow := row{ID: "slow-" + setTiny, Goal: "G3", Title: "the whole path, set " + setTiny + ", each sync of the ledger 5 ms longer, against this disk",
		A: side{"slow ledger", b.slowRun}, B: side{"this disk", b.wholeRun(setTiny, true)}, Warmup: 1,
		Ratios: []ratio{
			{"documents a second", rateRatio, ">= 0.9", atLeast(0.9)},
			{"CPU", cpuRatio, "told", nil},
		},
		Counts: []count{
			{"ledger syncs a document, at 1,000 a second or more", syncsAtPace, "<= 0.1", atMost(0.1)},
			{"documents a second", sample.rate, "told", nil},
		}}
	if b.named {
		slow.Missing = "the vaultd that was named has no slow ledger"
	}
	return append(rows, slow)
}

// slowRun is the whole path of tiny documents, with a ledger on a slow disk.
func (b *bench) slowRun(ctx context.Context, dir string) (sample, error) {
	return b.run(ctx, dir, setTiny, runOptions{service: fakeOptions{TLS: true}, setup: setup{Slow: true}, untilStored: true})
}

// lifeCounts do not depend on the machine, and are what is asserted wherever the tests run.
func lifeCounts(set string) []count {
	return []count{
		{"ledger syncs a document, at 1,000 a second or more", syncsAtPace, "<= 0.1", atMost(0.1)},
		syncsAsTheyWere(set),
		{"commits a document", commitsPerDoc, "told", nil},
		notedPerDoc("syncs of other files a document", "file_syncs"),
		notedPerDoc("syncs of directories a document", "dir_syncs"),
		{"documents a second", sample.rate, "told", nil},
		{"CPU ms a document", func(s sample) float64 { return quotient(float64(s.CPU.Microseconds())/1000, float64(s.Docs)) }, "told", nil},
		{"sent twice", figureOfRow("duplicates"), "0", atMost(0)},
		{"short or badly signed", figureOfRow("bad"), "0", atMost(0)},
		{"status calls", figureOfRow("status_calls"), "told", nil},
		{"peak RssAnon, MiB", peakMiB, "<= 64", atMost(64)},
	}
}

// pace is how many documents a second the goal about syncs speaks of.
const pace = 1000

// syncsAtPace are the syncs of the ledger, of the documents that there were or, where they came more slowly than the goal
// has it, of those that would have come in that time. A slow machine gathers fewer changes for each sync, and has the time
// for them; so this does not depend on the machine.
func syncsAtPace(s sample) float64 {
	return quotient(float64(s.Syncs), max(float64(s.Docs), pace*s.Wall.Seconds()))
}

// syncsAsTheyWere are not scaled, and so they are more where documents come slowly. Of tiny ones as many come as the machine
// can take, and no machine is so slow that half a sync for each is a good one: a ledger that does not group its changes
// needs eighteen.
func syncsAsTheyWere(set string) count {
	c := count{"ledger syncs a document, as it was", syncsPerDoc, "told", nil}
	if set == setTiny {
		c.Want, c.Holds = "<= 0.5", atMost(0.5)
	}
	return c
}

// notedPerDoc tells of a figure that only this row has, for each document.
func notedPerDoc(name, figure string) count {
	return count{name, func(s sample) float64 { return quotient(s.figureNamed(figure), float64(s.Docs)) }, "told", nil}
}

func within(low, high float64) func(float64) bool {
	return func(v float64) bool { return v >= low && v <= high }
}

// wallLimit is what the path may take, of what it takes without a ledger. On tiny documents all that is left is the
// ledger's price.
func wallLimit(set string) float64 {
	if set == setTiny {
		return 1.05
	}
	return 1.10
}

func wallWant(set string) string { return fmt.Sprintf("<= %.2f", wallLimit(set)) }

// wholeRun lets vaultd take a data set to its end: until all is stored, or until all is archived and put away.
func (b *bench) wholeRun(set string, stored bool) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (sample, error) {
		return b.run(ctx, dir, set, runOptions{service: fakeOptions{TLS: true}, untilStored: stored})
	}
}

// runOptions says how a data set is taken to its end.
type runOptions struct {
	service     fakeOptions
	setup       setup
	alsoChecked bool                              // the end is also that vaultd has checked its ledger
	untilStored bool                              // and not until all is archived and put away
	stored      func(context.Context, work) error // waits until all is stored; nil: the service is asked for that
}

// work is a data set on its way.
type work struct {
	p     *process
	svc   *fake
	docs  int
	began time.Time
	told  *sample // takes what is noted on the way
}

// run drops a data set, starts service and vaultd, and measures from the start of the process to the end of the work.
func (b *bench) run(ctx context.Context, dir, set string, o runOptions) (s sample, err error) {
	folders, err := b.shelf(ctx, set)
	if err != nil {
		return s, err
	}
	svc, err := b.serveIn(ctx, dir, o.service)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, svc.Stop()) }()
	drop := filepath.Join(dir, "drop")
	o.setup.URL, o.setup.CA, o.setup.Drops = svc.URL, svc.CA, []string{drop}
	if o.untilStored {
		o.setup.PollMin = 10 * time.Minute
	}
	in, err := b.installVaultd(ctx, dir, o.setup)
	if err == nil {
		err = os.Mkdir(drop, 0o770)
	}
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, folders.takeBack(drop)) }()
	if err := folders.moveToDrop(drop); err != nil {
		return s, err
	}
	p, err := in.startDaemon(ctx)
	if err != nil {
		return s, err
	}
	defer p.kill()
	begin := beginning{at: p.began}
	w := work{p: p, svc: svc, docs: len(folders.names), began: begin.at, told: &s}
	if o.stored == nil {
		o.stored = func(ctx context.Context, w work) error { return w.awaitStored(ctx, w.docs) }
	}
	err = o.stored(ctx, w)
	if err == nil && !o.untilStored {
		err = p.awaitKept(ctx, drop, folders)
	}
	if err == nil && o.alsoChecked {
		_, err = p.awaitChecked(ctx)
	}
	if err != nil {
		return s, err
	}
	s.Wall, s.Docs, s.In = time.Since(begin.at), len(folders.names), folders.bytes
	return s, errors.Join(p.fillSample(&s, begin), svc.account(ctx, &s), p.stop())
}

// beginning is what a process had done when the work that is measured began.
type beginning struct {
	at             time.Time
	cpu            time.Duration
	commits, syncs uint64

	fileSyncs, dirSyncs float64
}

// awaitChecked waits until vaultd has looked through its whole ledger, which it does after each start.
func (p *process) awaitChecked(ctx context.Context) (begin beginning, err error) {
	if _, err := p.awaitReady(ctx); err != nil {
		return begin, err
	}
	err = p.awaitUntil(ctx, time.Second/2, "the check of the ledger", func() (bool, error) {
		m, err := p.readMetrics()
		return m["vaultd_check_timestamp_seconds"] > 0, err
	})
	if err != nil {
		return begin, err
	}
	return p.beginning()
}

// beginning is what the process has done up to now.
func (p *process) beginning() (begin beginning, err error) {
	m, err := p.readMetrics()
	if err != nil {
		return begin, err
	}
	cpu, err := p.readCPU()
	begin = beginning{at: time.Now(), cpu: cpu, commits: m.ledgerCommits(), syncs: m.ledgerSyncs()}
	begin.fileSyncs, begin.dirSyncs = m.otherSyncs()
	return begin, err
}

// awaitStored waits until the service has so many documents.
func (w work) awaitStored(ctx context.Context, want int) error {
	return w.p.awaitUntil(ctx, 10*time.Millisecond, "uploads", func() (bool, error) {
		t, err := w.svc.Stats(ctx)
		return t.Stored-t.Again >= want, err
	})
}

// awaitKept waits until every folder lies in _archived.
func (p *process) awaitKept(ctx context.Context, drop string, s *shelf) error {
	return p.awaitUntil(ctx, 25*time.Millisecond, "folders in _archived", func() (bool, error) {
		months, err := filepath.Glob(filepath.Join(drop, "_archived", "*"))
		n := 0
		for _, month := range months {
			there, oneErr := s.countLeft(month)
			n, err = n+there, errors.Join(err, oneErr)
		}
		return n >= len(s.names), err
	})
}

// account fills in what the service has counted.
func (f *fake) account(ctx context.Context, s *sample) error {
	t, err := f.Stats(ctx)
	s.Out = t.Bytes
	s.noteFigure("posts", float64(t.Posts))
	s.noteFigure("batches", float64(t.BatchCalls))
	s.noteFigure("registered", float64(t.Registered))
	s.noteFigure("puts", float64(t.Puts))
	s.noteFigure("again", float64(t.Again))
	s.noteFigure("duplicates", float64(t.Duplicates))
	s.noteFigure("bad", float64(t.ShortBodies+t.BadDigests+t.BadSignatures+t.Different))
	s.noteFigure("faulted", float64(t.Faulted))
	s.noteFigure("reregistered", float64(t.Reregistered))
	s.noteFigure("status_calls", float64(t.StatusAsked+t.ListsAsked))
	return err
}

// serveIn starts the stand-in of the service with a directory of its own below dir.
func (b *bench) serveIn(ctx context.Context, dir string, o fakeOptions) (*fake, error) {
	own := filepath.Join(dir, "service")
	if err := os.MkdirAll(own, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of the stand-in: %w", err)
	}
	o.Seed = b.seed
	return b.startFake(ctx, own, o)
}
