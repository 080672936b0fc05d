package main

import (
	"vaultd/internal/test/kit"

	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseMetrics(t *testing.T) {
	m := parseMetrics([]byte("# HELP vaultd_folders x 7\nvaultd_folders{state=\"archived\"} 12\nvaultd_ledger_syncs_total 1.5e+03\nvaultd_folders_seen_total 13\nnonsense\n\n"))
	if m.foldersIn("archived") != 12 || m.ledgerSyncs() != 1500 || m.foldersSeen() != 13 || m.foldersIn("open") != 0 || len(m) != 3 {
		t.Errorf(`%v, want m.foldersIn("archived") = 12, m.ledgerSyncs() = 1500, m.foldersSeen() = 13, m.foldersIn("open") = 0, len(m) = 3`, m)
	}
}

// What was lent comes back as it was, wherever the program has left it, and without what it wrote into the folders.
func TestShelf_TakeBack(t *testing.T) {
	made := grow(t, setTiny, 5, 1)
	before := content(t, made.Dir)
	s, err := openShelf(made.Dir)
	must(t, err)
	drop := filepath.Join(t.TempDir(), "drop")
	must(t, s.moveToDrop(drop))
	for i, place := range []string{"_archived/2026-11", "_rejected", ".vaultd/claimed/some-key", "_duplicates"} {
		must(t, os.MkdirAll(filepath.Join(drop, place), 0o770))
		must(t, os.Rename(filepath.Join(drop, s.names[i]), filepath.Join(drop, place, s.names[i])))
	}
	must(t, os.WriteFile(filepath.Join(drop, "_archived/2026-11", s.names[0], "_RECEIPT.json"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(drop, "_rejected", s.names[1], "_REASON.txt"), nil, 0o600))
	if left, err := s.countLeft(drop); left != 1 || err != nil {
		t.Errorf("%d left: %v", left, err)
	}
	must(t, s.takeBack(drop))
	if after := content(t, made.Dir); !slices.Equal(slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before))) {
		t.Errorf("after: %v", slices.Sorted(maps.Keys(after)))
	}
	must(t, os.Rename(filepath.Join(made.Dir, s.names[2]), filepath.Join(t.TempDir(), "lost")))
	kit.Check(t, s.takeBack(drop) != nil, "a folder that is missing was not missed")
}

// A bench that was killed leaves folders of runs, with folders of a data set in them. The next one has whole ones again.
func TestClaim_AfterADeath(t *testing.T) {
	b := quickBench(t)
	s, err := b.crowd(t.Context(), 3)
	must(t, err)
	run, _, err := b.makeRunDir("x")
	must(t, err)
	must(t, s.moveToDrop(filepath.Join(run, "drop")))
	release, err := b.lockWorkDir()
	must(t, err)
	if _, err := b.lockWorkDir(); err == nil {
		t.Error("two work in the same directory")
	}
	release()
	if _, err := os.Lstat(run); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
	if s, err = b.crowd(t.Context(), 3); err != nil || len(s.names) != 3 {
		t.Errorf("%v: %v, want no error, len(s.names) = 3", s, err)
	}
}

// A slow machine has few changes for each sync, and much time for them: both are the same at the pace of the goal.
func TestSyncsAtPace(t *testing.T) {
	fast := sample{Docs: 2000, Wall: time.Second, Syncs: 100}
	slow := sample{Docs: 2000, Wall: 20 * time.Second, Syncs: 1000}
	if f, s := syncsAtPace(fast), syncsAtPace(slow); f != 0.05 || s != 0.05 {
		t.Errorf("fast %v, slow %v", f, s)
	}
	each := syncsAtPace(sample{Docs: 2000, Wall: 4 * time.Second, Syncs: 10_000})
	kit.Check(t, each > 0.1, "five syncs for each document count as %v", each)
}

// A process that stands still goes on, whatever went wrong meanwhile, and one that still stands can be killed.
func TestProcess_Standing(t *testing.T) {
	p := &process{cmd: child(t.Context(), "sleep", "60"), ended: make(chan struct{})}
	must(t, p.cmd.Start())
	p.startSampling()
	defer p.kill()
	await := func(state string) {
		t.Helper()
		kit.Await(t, "state "+state, func() bool {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
			must(t, err)
			_, after, _ := strings.Cut(string(text), ") ")
			return strings.HasPrefix(after, state)
		})
	}
	failed := errors.New("no")
	if err := p.whileStopped(func() error { await("T"); return failed }); !errors.Is(err, failed) {
		t.Errorf("%v, want error %v", err, failed)
	}
	await("S")
	kit.Fails(t, "killed meanwhile", p.whileStopped(func() error { await("T"); p.kill(); return nil }), os.ErrProcessDone)
}
