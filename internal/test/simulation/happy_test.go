package simulation

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/dropwork"
	"vaultd/internal/ledger"
)

// TestHappyPath drops twelve folders, four of them special, and looks at everything
// that people and the service see at the end. The status interval is the usual one.
func TestHappyPath(t *testing.T) {
	for name, after := range map[string]struct {
		source ledger.Source
		drop   func(*dropwork.Settings, string)
	}{
		"Kept":    {ledger.Kept, func(*dropwork.Settings, string) {}},
		"Deleted": {ledger.Gone, func(d *dropwork.Settings, _ string) { d.Disposes, d.Grace = true, 24*time.Hour }},
		"Moved":   {ledger.Moved, func(d *dropwork.Settings, to string) { d.Disposes, d.DisposeTo, d.Grace = true, to, 24*time.Hour }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := New(t, Config{Seed: 1, Daemon: func(c *daemon.Config) { c.ProbeEvery = 0 }, Drop: func(_ int, d *dropwork.Settings, moved string) { after.drop(d, moved) }})
				w.Start()
				for i := range 8 {
					w.DropFolders(0, MakeFolder(1, i, Good))
				}
				faulty, again, once, always := MakeFolder(1, 8, Faulty), MakeFolder(1, 0, Good).CopyToDropAgain(), MakeFolder(1, 9, FailsOnce), MakeFolder(1, 10, Fails)
				w.DropFolders(0, faulty, once, always)
				w.Advance(5 * time.Minute)
				w.DropFolders(0, again)
				w.Advance(20 * time.Hour)
				if kept := listNames(filepath.Join(w.DropPath(0), "_archived/2000-01")); len(kept) != 9 {
					t.Errorf("before the grace was over %d folders were kept: %q", len(kept), kept)
				}
				w.RunUntilCalm(72 * time.Hour)
				o := w.Check(false)
				want := map[string]ledger.State{faulty.Name: ledger.Rejected, again.Name: ledger.Duplicate, always.Name: ledger.Quarantined}
				for _, d := range w.dropped {
					e := o.EntryOf(d.Name)
					if state, special := want[d.Name]; special {
						if e.State != state {
							t.Errorf("%q is %s", d.Name, e.State)
						}
						continue
					}
					if e.State != ledger.Archived || e.Source != after.source {
						t.Errorf("%q is %s/%s", d.Name, e.State, e.Source)
					}
					w.holds(*e, d.Folder)
				}
				w.words(o, faulty, again)
				if a, b := o.EntryOf("Müller 1-6"), o.EntryOf("Müller 1-7"); (a.SameNumber == b.Key) == (b.SameNumber == a.Key) {
					t.Error("not one of two with one invoice number names the other")
				}
				if !o.EntryOf("Müller 1-3").StrangeDate || o.EntryOf("Müller 1-4").StrangeDate {
					t.Error("the date that cannot be is not found, or another one is")
				}
				t.Log(o)
			})
		})
	}
}

// words looks at the words that came back with what was not archived.
func (w *World) words(o Outcome, faulty, again Folder) {
	w.t.Helper()
	for _, row := range []struct {
		path  string
		words []string
	}{
		{"_rejected/" + faulty.Name, []string{"NOT ARCHIVED", "metadata.json"}},
		{"_duplicates/" + again.Name, []string{"DUPLICATE", fmt.Sprintf("%q", o.EntryOf(strings.TrimSuffix(again.Name, " noch einmal")).Folder)}},
	} {
		text, err := os.ReadFile(filepath.Join(w.DropPath(0), row.path, "_REASON.txt"))
		if err != nil {
			w.t.Error(err)
		}
		for _, word := range row.words {
			if !bytes.Contains(text, []byte(word)) {
				w.t.Errorf("%s lacks %q:\n%s", row.path, word, text)
			}
		}
	}
}

// holds compares what the service stores for e with what the folder held, byte by byte,
// and with the receipt, where the source still has one.
func (w *World) holds(e ledger.Entry, f Folder) {
	w.t.Helper()
	stored, err := os.ReadFile(filepath.Join(w.dir, "emulator/objects", e.Package.SHA256.String()))
	w.failOn(err)
	if archive.Sum(stored) != e.Package.SHA256 || int64(len(stored)) != e.Package.Size {
		w.t.Errorf("%q: the service holds other bytes than recorded", f.Name)
	}
	z, err := zip.NewReader(bytes.NewReader(stored), int64(len(stored)))
	w.failOn(err)
	have := map[string][]byte{"metadata.json": f.Files["metadata.json"]}
	for _, entry := range z.File {
		in, err := entry.Open()
		w.failOn(err)
		var b bytes.Buffer
		_, err = b.ReadFrom(in)
		w.failOn(err)
		have[entry.Name] = b.Bytes()
	}
	for name, data := range f.Files {
		if !bytes.Equal(have[name], data) {
			w.t.Errorf("%q: %q in the archived ZIP is not what was dropped", f.Name, name)
		}
	}
	if len(have) != len(f.Files) {
		w.t.Errorf("%q: %d files archived, %d dropped", f.Name, len(have), len(f.Files))
	}
	if e.Source == ledger.Gone {
		return
	}
	at := e.Dest
	if e.Source == ledger.Kept {
		at = filepath.Join(w.DropPath(0), e.Dest)
	}
	receipt, err := os.ReadFile(filepath.Join(at, "_RECEIPT.json"))
	if err != nil || !slices.ContainsFunc([]string{string(e.ArchivedRemote)}, func(s string) bool { return bytes.Contains(receipt, []byte(s)) }) ||
		!bytes.Contains(receipt, []byte(e.Package.SHA256.String())) {
		w.t.Errorf("%q: its receipt: %v\n%s", f.Name, err, receipt)
	}
}
