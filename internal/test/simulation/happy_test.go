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
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// TestHappyPath drops twelve folders, four of them special, and looks at everything
// that people and the service see at the end. The status interval is the usual one.
func TestHappyPath(t *testing.T) {
	type row struct {
		source ledger.Source
		drop   func(*dropwork.Settings, string)
	}
	kit.Rows(t, map[string]row{
		"Kept":    {ledger.Kept, func(*dropwork.Settings, string) {}},
		"Deleted": {ledger.Gone, func(d *dropwork.Settings, _ string) { d.Disposes, d.Grace = true, 24*time.Hour }},
		"Moved":   {ledger.Moved, func(d *dropwork.Settings, to string) { d.Disposes, d.DisposeTo, d.Grace = true, to, 24*time.Hour }},
	}, func(t *testing.T, after row) {
		kit.ParallelBubble(t, func(t *testing.T) {
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
			kit.Len(t, "before the grace was over", listNames(filepath.Join(w.DropPath(0), "_archived/2000-01")), 9)
			w.RunUntilCalm(72 * time.Hour)
			o := w.Check(false)
			want := map[string]ledger.State{faulty.Name: ledger.Rejected, again.Name: ledger.Duplicate, always.Name: ledger.Quarantined}
			for _, d := range w.dropped {
				e := o.EntryOf(d.Name)
				if state, special := want[d.Name]; special {
					kit.Want(t, fmt.Sprintf("%q", d.Name), e.State, state)
					continue
				}
				kit.Check(t, e.State == ledger.Archived && e.Source == after.source,
					"%q is %s/%s", d.Name, e.State, e.Source)
				w.holds(*e, d.Folder)
			}
			w.words(o, faulty, again)
			if a, b := o.EntryOf("Müller 1-6"), o.EntryOf("Müller 1-7"); (a.SameNumber == b.Key) == (b.SameNumber == a.Key) {
				t.Error("not one of two with one invoice number names the other")
			}
			kit.Check(t, o.EntryOf("Müller 1-3").StrangeDate && !o.EntryOf("Müller 1-4").StrangeDate,
				"the date that cannot be is not found, or another one is")
			t.Log(o)
		})
	})
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
		kit.Want(w.t, "the error", err, nil)
		for _, word := range row.words {
			kit.Check(w.t, bytes.Contains(text, []byte(word)), "%s lacks %q:\n%s", row.path, word, text)
		}
	}
}

// holds compares what the service stores for e with what the folder held, byte by byte,
// and with the receipt, where the source still has one.
func (w *World) holds(e ledger.Entry, f Folder) {
	w.t.Helper()
	stored, err := os.ReadFile(filepath.Join(w.dir, "emulator/objects", e.Package.SHA256.String()))
	w.failOn(err)
	kit.Check(w.t, archive.Sum(stored) == e.Package.SHA256 && int64(len(stored)) == e.Package.Size,
		"%q: the service holds other bytes than recorded", f.Name)
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
		kit.Check(w.t, bytes.Equal(have[name], data),
			"%q: %q in the archived ZIP is not what was dropped", f.Name, name)
	}
	kit.Want(w.t, fmt.Sprintf("%q", f.Name), len(have), len(f.Files))
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

// Something is mounted on a folder at one moment of its life after the other.
// All of it stays in place while that is seen, and once it is gone everything
// ends.
func TestMount_I18_AtEveryMoment(t *testing.T) {
	quarantined, waited, every := 0, 0, 1
	if isSampled(t, "36 moments") {
		every = 3
	}
	for n := every / 2; n < 36; n += every {
		at := time.Duration(n)*6*time.Second + 3*time.Second // dropped, claimed, packed: between two ticks
		if n >= 20 {
			at = time.Duration(n-19) * 10 * time.Minute // sent, archived, kept, removed
		}
		synctest.Test(t, func(t *testing.T) {
			w := New(t, Config{Seed: uint64(n), Drop: func(_ int, d *dropwork.Settings, _ string) {
				d.Disposes, d.Grace = true, time.Hour
			}})
			w.Start()
			f := MakeFolder(uint64(n), 0, Good)
			w.DropFolders(0, f)
			w.Advance(at)
			w.MountOn(f.Name, 5*time.Hour)
			w.Advance(4 * time.Hour)
			if w.mounts.countMet() > 0 {
				waited++
			}
			w.RunUntilCalm(48 * time.Hour)
			o := w.Check(false)
			if o.Entries[0].State == ledger.Quarantined {
				quarantined++
			}
		})
	}
	kit.Check(t, (quarantined != 0 || every > 1) && waited >= 20/every, "vacuous: %d quarantined, %d met the mount", quarantined, waited)
}

// TestWindow_I6 tampers with the clocks while a ticket is held back: it must be
// refused once it is over.
func TestWindow_I6(t *testing.T) {
	kit.Rows(t, map[string]func(*World){
		"ClockSetBack":     func(w *World) { w.clock.setMachineClock(-12 * time.Minute) },
		"ClockSetForward":  func(w *World) { w.clock.setMachineClock(3 * time.Hour) },
		"Suspended":        func(w *World) { w.clock.suspend(20 * time.Minute) },
		"SetBackAndReboot": func(w *World) { w.clock.setMachineClock(-12 * time.Minute); w.Restart(Reboot) },
		"Died":             func(w *World) { w.Restart(Death) },
	}, func(t *testing.T, tamper func(*World)) {
		kit.ParallelBubble(t, func(t *testing.T) {
			w := New(t, Config{Seed: 11})
			w.SetPlan(forUntil(w, "upload", 22*time.Minute, emulator.Fault{Kind: emulator.Refuse}))
			w.Start()
			w.DropFolders(0, MakeFolder(11, 0, Good), MakeFolder(11, 1, Good))
			w.Advance(13 * time.Minute)
			tamper(w)
			w.Advance(time.Hour)
			w.RunUntilCalm(72 * time.Hour)
			kit.Want(t, "o", len(w.Check(true).EntriesIn(ledger.Archived)), 2)
		})
	})
}
