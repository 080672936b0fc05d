package daemon

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/emulator"
	"vaultd/internal/extractapi"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/operator"
	"vaultd/internal/test/kit"
)

// booksAccount is the account of the extracts at the emulator.
var booksAccount = emulator.Account{Name: "books", Secret: "own"}

// zipWith is a ZIP with one file of this content.
func zipWith(t *testing.T, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("records.json")
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	kit.Must(t, errors.Join(err, z.Close()))
	return b.Bytes()
}

// offerExtract has the emulator offer an extract of two files, and returns how the daemon takes extracts in.
func (h *testDaemon) offerExtract() *Extracts {
	h.t.Helper()
	made := time.Now().Add(-time.Hour).UTC()
	h.must(h.emu.PublishExtract(emulator.PublishedExtract{ID: "4711", Type: archive.DeltaExtract, Name: "books", Start: made.AddDate(0, 0, -1), End: made, Made: made,
		Files: []emulator.PublishedFile{{Table: "IA_INVOICE", Name: "i.zip", Content: zipWith(h.t, "[1]")}, {Table: "ADM_SUPPLIER", Name: "s.zip", Content: zipWith(h.t, "[2]")}}}))
	h.must(h.emu.SetTableDefinition([]byte(`[{"Table name":"IA_INVOICE","Columns":[]}]`)))
	api, _, err := apicall.New(apicall.Config{BaseURL: "https://books.example", Transport: h.emu.Transport(), Now: time.Now, Auth: apicall.Auth{Method: apicall.Basic, Username: booksAccount.Name,
		Secret: func() (string, error) { return booksAccount.Secret, nil }}})
	h.must(err)
	client := extractapi.New(api)
	return &Extracts{Service: client, Acknowledger: client, Custody: h.t.TempDir(), Every: time.Hour, Workers: 2, MaxDownloads: 10, ToDrop: "acme-in", DocumentType: "Invoice"}
}

// dieAfterThePut ends the process once after that many folders were put into the drop folder, before the ledger knows of it.
func (h *testDaemon) dieAfterThePut(folders int32) {
	var put, died atomic.Int32
	files := durable.Hook(func(op, name string, do func() error) error {
		if op == "sync" && name == "0002-s.zip" && put.Load() == folders && died.Add(1) == 1 {
			return errors.New("the process dies here")
		}
		err := do()
		if op == "rename" && strings.HasPrefix(name, "Extract ") && err == nil {
			put.Add(1)
		}
		return err
	})
	h.files.Store(&files)
	h.cfg.LedgerFault = func(op string) error {
		if op == "commit" && put.Load() >= folders && died.Add(1) == 1 {
			return errors.New("the process dies here")
		}
		return nil
	}
}

// restart opens the daemon again after it died, with or without extracts.
func (h *testDaemon) restart(x *Extracts) {
	h.t.Helper()
	kit.Fails(h.t, "the process ended without an error", <-h.ended)
	_ = h.d.Close() // its ledger has failed
	h.cfg.Extracts, h.cfg.LedgerFault = x, nil
	h.files.Store(nil)
	h.again()
}

// wantHandedOn demands that both files are archived once, that the extract was acknowledged, and that nothing is left out of sight.
func (h *testDaemon) wantHandedOn() {
	h.t.Helper()
	a, _, err := h.d.Ledger().FindArrival(arrival.Extract, "4711")
	kit.Check(h.t, err == nil && a.State == arrival.Acknowledged && !a.HandedOnAt.IsZero(),
		"extract is %v for %v, handed on at %v (error %v), want %v and handed on", a.State, a.Cause, a.HandedOnAt, err, arrival.Acknowledged)
	h.onceEach("4711/i.zip", "4711/s.zip")
	kit.Len(h.t, "archived", h.archived(), 2)
	left, err := os.ReadDir(filepath.Join(h.path, ".vaultd", "incoming"))
	kit.Check(h.t, err == nil && len(left) <= 0, "left in the incoming folder: %v (error %v), want nothing", left, err)
}

// An extract comes, and its files end archived.
func TestHandOn_I1_ExtractEndsArchived(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		x := h.offerExtract()
		h.halt()
		h.cfg.Extracts = x
		h.again()
		h.pass()
		h.wantHandedOn()
		got, _ := h.entries() // in the order in which they were seen
		slices.Sort(got)
		kit.Want(t, "entries", got, []string{"Extract 4711 0001-i.zip archived", "Extract 4711 0002-s.zip archived"})
	})
}

// The process dies when files are in the drop folder and the ledger does not know it. They are found there by the next start, or were archived
// meanwhile, and what is put there once more is a duplicate: nothing is archived twice.
func TestHandOn_I2_CrashArchivesNothingTwice(t *testing.T) {
	t.Parallel()
	for _, folders := range []int32{1, 2} {
		for _, isTaken := range []bool{false, true} {
			inBubble(t, func(*Config) {}, func(h *testDaemon) {
				x := h.offerExtract()
				h.halt()
				h.cfg.Extracts = x
				h.dieAfterThePut(folders)
				h.again()
				if isTaken {
					h.restart(nil)
					h.pass()
					got := h.archived()
					kit.Check(t, len(got) == int(folders), "archived before the extract continues = %v, want %d", got, folders)
					h.halt()
					h.cfg.Extracts = x
					h.again()
				} else {
					h.restart(x)
				}
				h.pass()
				h.pass()
				h.wantHandedOn()
				_, all := h.entries()
				duplicates := 0
				for _, e := range all {
					if e.State == ledger.Duplicate {
						duplicates++
					} else if e.State != ledger.Archived {
						t.Errorf("%s is %s, want %s", e.Folder, e.State, ledger.Archived)
					}
				}
				want := map[bool]int32{true: folders}[isTaken]
				kit.Check(t, !isTaken || duplicates == int(want), "duplicates = %d, want %d", duplicates, want)
			})
		}
	}
}

// While the drop folder is away nothing is lost and the service is not told; when it is back, the extract goes on.
func TestHandOn_I24_DropFolderIsAway(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		x := h.offerExtract()
		h.halt()
		h.must(os.Rename(h.path, h.path+".away"))
		h.cfg.Extracts = x
		h.again()
		h.pass()
		a, _, err := h.d.Ledger().FindArrival(arrival.Extract, "4711")
		if err != nil || a.State != arrival.Held || a.Cause.Code != "drop" || !a.HandedOnAt.IsZero() {
			t.Errorf("extract is %v for %v, handed on at %v (error %v), want %v for the drop, not handed on", a.State, a.Cause, a.HandedOnAt, err, arrival.Held)
		}
		h.must(os.Rename(h.path+".away", h.path))
		for range 4 {
			h.pass()
		}
		h.wantHandedOn()
	})
}

// returned makes a ledger in which one folder was rejected and given back, and the people's side of it.
func returned(t *testing.T) (*operator.Actions, *boltledger.Ledger, ledger.Entry, string) {
	t.Helper()
	now := kit.Value(Clock())(t)
	cfg := Config{StateDir: t.TempDir(), Now: now, Log: slog.New(slog.DiscardHandler), Drops: []dropwork.Settings{{Name: "acme", Path: t.TempDir(), Vault: "V-1", Settle: time.Minute}}}
	kit.Must(t, boltledger.Create(cfg.StateDir, ledger.Info{ID: "L-1", Environment: "test", Created: now().Wall}))
	l := kit.Value(boltledger.Open(boltledger.Config{Dir: cfg.StateDir}))(t)
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
