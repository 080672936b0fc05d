package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/dropwork"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/operator"
	"vaultd/internal/test/kit"
)

// returned makes a ledger in which one folder was rejected and given back, and the people's side of it.
func returned(t *testing.T) (*operator.Actions, *boltledger.Ledger, ledger.Entry, string) {
	t.Helper()
	now, err := Clock()
	kit.Must(t, err)
	cfg := Config{StateDir: t.TempDir(), Now: now, Log: slog.New(slog.DiscardHandler), Drops: []dropwork.Settings{{Name: "acme", Path: t.TempDir(), Vault: "V-1", Settle: time.Minute}}}
	kit.Must(t, boltledger.Create(cfg.StateDir, ledger.Info{ID: "L-1", Environment: "test", Created: now().Wall}))
	l, err := boltledger.Open(boltledger.Config{Dir: cfg.StateDir})
	kit.Must(t, err)
	t.Cleanup(func() { l.Close() })
	dir := filepath.Join(cfg.Drops[0].Path, "_rejected", "Huber 88")
	kit.Must(t, errors.Join(os.MkdirAll(dir, 0o770), os.WriteFile(filepath.Join(dir, "metadata.json"), []byte("{}"), 0o660)))
	rs, err := l.Apply(t.Context(), ledger.Change{Key: archive.NewKey(now().Wall), At: now(), Events: []ledger.Event{
		ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V-1", Drop: "acme", Folder: "Huber 88"}, ledger.Refused{Cause: ledger.Cause{Code: "x"}},
		ledger.PlaceIntended{Dest: "_rejected/Huber 88"}, ledger.Placed{},
	}})
	kit.Need(t, err == nil && rs[0].Err == nil, "not committed: %v, %v", err, rs)
	return NewActions(cfg, l), l, rs[0].Entry, cfg.Drops[0].Path
}

// The old entry moves on between the look and the act: both are committed all the same, with who acted and why.
func TestRetry_I29_OldEntryMovedOn(t *testing.T) {
	t.Parallel()
	h, l, old, path := returned(t)
	held, err := h.Act(t.Context(), old, operator.Person{UID: 7}, func(by ledger.Operator) ledger.Event { return ledger.Held{By: by} })
	kit.Need(t, err == nil && held.Hold, "held = %t (error %v), want true", held.Hold, err)
	next, err := h.Retry(t.Context(), old, operator.Person{UID: 8, Reason: "corrected"}) // as it was before
	if err != nil || next.State != ledger.Discovered || next.Supersedes != old.Key || next.Folder != "Huber 88" || next.Fingerprint.IsZero() {
		t.Fatalf("the folder is taken again as %+v (error %v), want a discovered entry with a fingerprint that supersedes %s", next, err, old.Key)
	}
	kit.Want(t, "the error of Stat", kit.Err(os.Stat(filepath.Join(path, ".vaultd", "claimed", next.Key.String(), "Huber 88", "metadata.json"))), nil)
	now, _, err := l.Entry(old.Key)
	kit.Check(t, err == nil && now.Resolved && now.State == ledger.Rejected,
		"the old entry = %+v (error %v), want it rejected and resolved", now, err)
	notes, err := l.Notes(old.Key)
	kit.Check(t, err == nil && len(notes) == 1 && notes[now.Rev].Text == "corrected",
		"notes = %v (error %v), want only %q at revision %d", notes, err, "corrected", now.Rev)
	var last []string
	kit.Must(t, l.Lines(1, func(_ uint64, line []byte) error { last = append(last, string(line)); return nil }))
	kit.Holds(t, "last line of the journal", last[len(last)-1], `"event":"retaken"`, `"uid":8`, `"other":"`+next.Key.String())
	found, err := l.Verify(t.Context())
	kit.Check(t, err == nil && len(found) <= 0, "findings = %v (error %v), want none", found, err)
}

// Where the folder cannot be taken, nothing has changed.
func TestRetry_FolderCannotBeTaken(t *testing.T) {
	t.Parallel()
	kit.Rows(t, map[string]func(h *operator.Actions, dir string, old *ledger.Entry) error{
		"Gone": func(_ *operator.Actions, dir string, _ *ledger.Entry) error { return os.Rename(dir, dir+" moved") },
		"AFileNow": func(_ *operator.Actions, dir string, _ *ledger.Entry) error {
			return errors.Join(os.Rename(dir, dir+" moved"), os.WriteFile(dir, nil, 0o600))
		},
		"ALinkNow": func(_ *operator.Actions, dir string, _ *ledger.Entry) error {
			return errors.Join(os.Rename(dir, dir+" moved"), os.Symlink(dir+" moved", dir))
		},
		"NotAPlace":    func(_ *operator.Actions, _ string, old *ledger.Entry) error { old.Dest = "../elsewhere"; return nil },
		"StillClaimed": func(_ *operator.Actions, _ string, old *ledger.Entry) error { old.Source = ledger.Claimed; return nil },
		"NoSuchDrop":   func(_ *operator.Actions, _ string, old *ledger.Entry) error { old.Drop = "beta"; return nil },
		"AnotherLedger": func(h *operator.Actions, dir string, _ *ledger.Entry) error {
			return foreign(filepath.Dir(filepath.Dir(dir)))
		},
	}, func(t *testing.T, spoil func(h *operator.Actions, dir string, old *ledger.Entry) error) {
		h, l, old, path := returned(t)
		kit.Must(t, spoil(h, filepath.Join(path, "_rejected", "Huber 88"), &old))
		before := l.Head()
		kit.Fails(t, "taken", kit.Err(h.Retry(t.Context(), old, operator.Person{})))
		if after := l.Head(); after != before || l.Balance().Seen != 1 {
			t.Errorf("journal lines = %d, entries = %d, want %d and 1", after.N, l.Balance().Seen, before.N)
		}
	})
}

// foreign marks a drop folder as another ledger's.
func foreign(path string) error {
	f, err := drop.Open(drop.Config{Path: path, Name: "acme", LedgerID: "L-2", Environment: "test", Epoch: 1})
	if err != nil {
		return err
	}
	return f.Close()
}

// The process ends between the claim and the commit: the folder lies claimed, durably, for the next start to adopt.
func TestRetry_I11_CommitFailsAfterTheClaim(t *testing.T) {
	t.Parallel()
	h, l, old, path := returned(t)
	if err := l.Close(); err != nil { // every later change is refused
		t.Fatal(err)
	}
	next, err := h.Retry(t.Context(), old, operator.Person{})
	kit.Need(t, err != nil, "committed as %+v, want an error", next)
	f := kit.Value(drop.Open(drop.Config{Path: path, Name: "acme", LedgerID: "L-1", Environment: "test", Epoch: 1}))(t)
	defer f.Close()
	n := 0
	for c, err := range f.AllClaims() {
		if n++; err != nil || c.Folder != "Huber 88" {
			t.Errorf("claim = %+v (error %v), want Huber 88", c, err)
		}
	}
	kit.Want(t, "claimed folders", n, 1)
}
