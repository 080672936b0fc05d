package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	burstSettle = time.Second
	// observedAtOnce is how many folders vaultd observes at a time, so that its memory does not grow with what is dropped.
	observedAtOnce = 10_000
	// burstSpan is what each of such portions may take beside settling.
	burstSpan = 10 * time.Second
)

// burstRows drop very many folders at once, more than the kernel has room for in its queue of events, and look how long
// a single one takes to be noticed. vaultd stands still while they come: if it went on, it might keep up with the queue.
func (b *bench) burstRows() []row {
	folders := b.scaleForQuick(100_000)
	if b.quick {
		folders = 20_000 // fewer would fit into the queue
	}
	return []row{
		{ID: "burst", Goal: "G11", Title: fmt.Sprintf("%s folders renamed into the drop folder at once, settle %v", short(folders), burstSettle),
			A: side{"vaultd", b.runBurst(folders)}, Pairs: 1,
			Counts: []count{
				{"lost", figureOfRow("lost"), "0", atMost(0)},
				{"folders for each event that the kernel keeps", figureOfRow("overflow"), ">= 1.1", atLeast(1.1)},
				{"time for each 10,000, of settle + 10 s", figureOfRow("worst_span"), "<= 1", atMost(1)},
				{"all claimed after the last came, s", figureOfRow("claimed_s"), "told", nil},
				{"CPU until then, s", figureOfRow("claimed_cpu_s"), "told", nil},
				{"all archived after the last came, s", func(s sample) float64 { return s.Wall.Seconds() }, "told", nil},
				{"peak RssAnon, MiB", peakMiB, "<= 64", atMost(64)},
			}},
		{ID: "notice", Goal: "G11", Title: "one folder that is complete: from its rename to its claim", A: side{"vaultd", b.runNotice}, Pairs: 1,
			Counts: []count{
				{"p50, ms", figureOfRow("p50_ms"), "told", nil},
				{"p99, ms", figureOfRow("p99_ms"), "<= 50", atMost(50)},
			}},
	}
}

func (b *bench) runBurst(n int) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		folders, err := b.crowd(ctx, n)
		if err != nil {
			return s, err
		}
		svc, err := b.serveIn(ctx, dir, fakeOptions{TLS: true})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, svc.Stop()) }()
		return b.runAmongFolders(ctx, dir, folders, setup{URL: svc.URL, CA: svc.CA, Settle: burstSettle, Rescan: time.Minute},
			func(p *process, drop string) (sample, error) {
				if err := p.whileStopped(func() error { return folders.moveToDrop(drop) }); err != nil {
					return sample{}, err
				}
				return p.throughBurst(ctx, drop, folders)
			})
	}
}

// keptEvents is how many events the kernel keeps for who does not read them.
func keptEvents() (int, error) {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// runAmongFolders starts vaultd on an empty drop folder, lets use bring folders into it when it is ready, and takes back after the end
// what is left of them.
func (b *bench) runAmongFolders(ctx context.Context, dir string, folders *shelf, su setup, use func(p *process, drop string) (sample, error)) (s sample, err error) {
	drop := filepath.Join(dir, "drop")
	su.Drops = []string{drop}
	in, err := b.installVaultd(ctx, dir, su)
	if err == nil {
		err = os.Mkdir(drop, 0o770)
	}
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, folders.takeBack(drop)) }() // after the kill
	p, err := in.startDaemon(ctx)
	if err != nil {
		return s, err
	}
	defer p.kill()
	if _, err := p.awaitReady(ctx); err != nil {
		return s, err
	}
	if s, err = use(p, drop); err != nil {
		return s, err
	}
	return s, p.stop()
}

// throughBurst waits until everything that came is taken, and then until it is archived.
func (p *process) throughBurst(ctx context.Context, drop string, folders *shelf) (s sample, err error) {
	came, all := time.Now(), len(folders.names)
	kept, err := keptEvents()
	if err != nil {
		return s, err
	}
	s.noteFigure("overflow", quotient(float64(all), float64(kept)))
	span := (burstSettle + burstSpan).Seconds()
	worst, portions := 0.0, 0
	err = p.awaitUntil(ctx, time.Second/2, "all folders to be taken", func() (bool, error) {
		left, err := folders.countLeft(drop)
		now := time.Since(came).Seconds()
		for (all-left)/observedAtOnce > portions || left == 0 && portions*observedAtOnce < all {
			portions++
			worst = max(worst, now/(float64(portions)*span))
		}
		return left == 0, err
	})
	if err != nil {
		return s, err
	}
	s.noteFigure("worst_span", worst)
	s.noteFigure("claimed_s", time.Since(came).Seconds())
	cpu, err := p.readCPU()
	if err != nil {
		return s, err
	}
	s.noteFigure("claimed_cpu_s", cpu.Seconds())
	if err := p.awaitKept(ctx, drop, folders); err != nil {
		return s, err
	}
	s.Wall, s.Docs, s.In = time.Since(came), all, folders.bytes
	err = p.fillSample(&s, beginning{})
	s.noteFigure("lost", float64(all)-s.figureNamed("seen"))
	return s, err
}

// noticed is how many folders are dropped one by one.
const noticed = 300

// runNotice drops single folders that are complete by their marker, and looks how soon each is gone from the drop folder.
func (b *bench) runNotice(ctx context.Context, dir string) (s sample, err error) {
	folders, err := b.crowd(ctx, noticed)
	if err != nil {
		return s, err
	}
	away, err := freePort()
	if err != nil {
		return s, err
	}
	return b.runAmongFolders(ctx, dir, folders, setup{URL: "http://" + away, Complete: "marker", Rescan: time.Minute},
		func(p *process, drop string) (sample, error) { return p.noticeEach(ctx, drop, folders) })
}

func (p *process) noticeEach(ctx context.Context, drop string, folders *shelf) (s sample, err error) {
	var took []float64
	for _, name := range folders.names {
		in := filepath.Join(drop, name)
		if err := os.Rename(filepath.Join(folders.dir, name), in); err != nil {
			return s, err
		}
		came := time.Now()
		err := p.awaitUntil(ctx, 200*time.Microsecond, "a folder to be taken", func() (bool, error) {
			_, err := os.Lstat(in)
			return errors.Is(err, os.ErrNotExist), nil
		})
		if err != nil {
			return s, err
		}
		took = append(took, float64(time.Since(came).Microseconds())/1000)
		if err := p.rest(ctx, 10*time.Millisecond); err != nil {
			return s, err
		}
	}
	slices.Sort(took)
	s.Docs = len(took)
	s.noteFigure("p50_ms", took[len(took)/2])
	s.noteFigure("p99_ms", took[len(took)*99/100])
	return s, nil
}
