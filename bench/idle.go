package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// idleRows watch vaultd doing nothing, with the times of a usual installation, a large ledger and very many folders: such
// as it has archived and keeps, and such as lie in the drop folder without a sidecar and are not taken.
func (b *bench) idleRows() []row {
	large, folders := b.scaleForQuick(largeLedger), b.scaleForQuick(100_000)
	counts := []count{
		{"share of one core, %", figureOfRow("core_percent"), "<= 0.1", atMost(0.1)},
		{"ledger syncs", func(s sample) float64 { return float64(s.Syncs) }, "0", atMost(0)},
		{"syncs of files", figureOfRow("file_syncs"), "0", atMost(0)},
		{"syncs of directories", figureOfRow("dir_syncs"), "0", atMost(0)},
		{"RssAnon, MiB", peakMiB, "<= 24", atMost(24)},
		{"watched for, s", func(s sample) float64 { return s.Wall.Seconds() }, "told", nil},
		{"check of the ledger before, s", figureOfRow("check_s"), "told", nil},
		{"CPU of that check, s", figureOfRow("check_cpu_s"), "told", nil},
	}
	at := func(id, title string, lay func(drop string) error) row {
		return row{ID: "idle-" + id, Goal: "G10", Title: fmt.Sprintf("at rest, ledger of %s, %s folders %s", short(large), short(folders), title),
			A: side{"vaultd", b.idle(large, lay)}, Pairs: 1, Counts: counts}
	}
	return []row{
		at("kept", "kept in _archived", func(drop string) error {
			return emptyFolders(filepath.Join(drop, "_archived", "2026-10"), folders)
		}),
		at("lying", "in the drop folder without a sidecar", func(drop string) error { return emptyFolders(drop, folders) }),
	}
}

// idleFor is how long vaultd is left alone, and how long it is watched then: for whole rescans, so that it does not matter
// when they come, and for two of them where there are so many folders that a rescan takes half of them.
func (b *bench) idleFor() (settle, watch time.Duration) {
	if b.quick {
		return 10 * time.Second, 60 * time.Second
	}
	return 90 * time.Second, 120 * time.Second
}

func (b *bench) idle(docs int, lay func(drop string) error) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		state, err := b.workingLedger(ctx, docs, 0, dir)
		if err != nil {
			return s, err
		}
		svc, err := b.serveIn(ctx, dir, fakeOptions{TLS: true, Listen: ledgerAddress})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, svc.Stop()) }()
		drop := filepath.Join(dir, "drop")
		if err := errors.Join(os.Mkdir(drop, 0o770), lay(drop)); err != nil {
			return s, err
		}
		in, err := b.installVaultd(ctx, dir, setup{URL: svc.URL, CA: svc.CA, Drops: []string{drop}, State: state, Calm: true})
		if err != nil {
			return s, err
		}
		p, err := in.startDaemon(ctx)
		if err != nil {
			return s, err
		}
		defer p.kill()
		checked, err := p.awaitChecked(ctx)
		if err != nil {
			return s, err
		}
		s.noteFigure("check_s", time.Since(p.began).Seconds())
		s.noteFigure("check_cpu_s", checked.cpu.Seconds())
		return s, errors.Join(b.watchIdle(ctx, p, &s), p.stop())
	}
}

// watchIdle measures between two looks, and asks nothing in between.
func (b *bench) watchIdle(ctx context.Context, p *process, s *sample) error {
	settle, watch := b.idleFor()
	if err := p.rest(ctx, settle); err != nil {
		return err
	}
	m, err := p.readMetrics()
	if err != nil {
		return err
	}
	before, err := p.readCPU()
	if err != nil {
		return err
	}
	p.gauge.resetPeak()
	began := time.Now()
	if err := p.rest(ctx, watch); err != nil {
		return err
	}
	s.Wall = time.Since(began)
	after, err := p.readCPU()
	if err != nil {
		return err
	}
	_, s.PeakAnon, _ = p.gauge.readMemory()
	s.CPU = after - before
	s.noteFigure("core_percent", 100*quotient(s.CPU.Seconds(), s.Wall.Seconds()))
	later, err := p.readMetrics()
	if err != nil {
		return err
	}
	s.Syncs, s.Commits = later.ledgerSyncs()-m.ledgerSyncs(), later.ledgerCommits()-m.ledgerCommits()
	files, dirs := m.otherSyncs()
	laterFiles, laterDirs := later.otherSyncs()
	s.noteFigure("file_syncs", laterFiles-files)
	s.noteFigure("dir_syncs", laterDirs-dirs)
	return nil
}

// rest leaves the process alone for a while.
func (p *process) rest(ctx context.Context, d time.Duration) error {
	over := time.Now().Add(d)
	return p.awaitUntil(ctx, d/10, "the end of a rest", func() (bool, error) { return !time.Now().Before(over), nil })
}

// emptyFolders makes folders that vaultd has no reason to look into.
func emptyFolders(dir string, n int) error {
	if err := os.MkdirAll(dir, 0o770); err != nil {
		return err
	}
	for i := range n {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprintf("Rechnung %06d", i)), 0o770); err != nil {
			return err
		}
	}
	return nil
}
