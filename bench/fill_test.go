package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/packager"
	"vaultd/internal/test/kit"
)

func TestFill_IsALedgerAsProductionHasIt(t *testing.T) {
	for _, together := range []int{0, 100} {
		checkFilled(t, together)
	}
}

func checkFilled(t *testing.T, together int) {
	t.Helper()
	dir := t.TempDir()
	must(t, fillLedger(t.Context(), dir, 700, 30, together))
	l, err := boltledger.Open(boltledger.Config{Dir: dir})
	must(t, err)
	defer l.Close()
	b := l.Balance()
	kit.Check(t, b.Seen == 700 && b.States[ledger.Archived] == 670 && b.States[ledger.Uploaded] == 30 && b.IsBalanced(),
		"balance %+v", b)
	atRest := 0
	must(t, l.EntriesOldestFirst(func(e ledger.Entry) error {
		if e.IsAtRest() && e.Source == ledger.Kept {
			atRest++
		}
		return nil
	}))
	problems, err := l.Verify(t.Context())
	kit.Check(t, err == nil && len(problems) == 0, "%v: %v, want no error, len(problems) <= 0", err, problems)
	if atRest != 670 || l.Head().N != 1+670*9+30*6 {
		t.Errorf("%d at rest, %d lines", atRest, l.Head().N)
	}
}

// A ledger is filled with lives in one change each. Production tells them change by change: the records are the same.
func TestFill_AWholeLifeIsOneInSteps(t *testing.T) {
	f := newLives(time.Now()).next()
	var after [2]ledger.Entry
	for i, tell := range []func(*boltledger.Ledger) error{
		func(l *boltledger.Ledger) error { return f.apply(t.Context(), l) },
		func(l *boltledger.Ledger) error {
			rs, err := l.Apply(t.Context(), f.whole(false))
			if err == nil {
				err = rs[0].Err
			}
			return err
		},
	} {
		_, err := onLedger(t.TempDir(), 0, 0, func(l *boltledger.Ledger) error {
			if err := tell(l); err != nil {
				return err
			}
			e, ok, err := l.Entry(f.key)
			kit.Need(t, ok, "no entry %v", err)
			e.Registrations[0].Ticket.Object = archive.ObjectDigest{} // each ledger has a key of its own for it
			after[i] = e
			return err
		})
		must(t, err)
	}
	kit.Check(t, reflect.DeepEqual(after[0], after[1]) && after[0].State == ledger.Archived,
		"in steps:\n%+v\nwhole:\n%+v", after[0], after[1])
}

// G3: who waits for nobody costs the disk little, however slow it is.
func TestLedgerFlow_G3_SlowSyncs(t *testing.T) {
	f := newFlow(300)
	s, err := onLedger(t.TempDir(), gatherWindow, slowSync, func(l *boltledger.Ledger) error {
		return f.steady(t.Context(), l, newLives(time.Now()).take(300))
	})
	must(t, err)
	// Nine changes a document, 2,700 in all: who waits for each would pay two syncs for each.
	if windows := uint64(s.Wall/gatherWindow) + 2; s.Commits == 0 || s.Commits > 2*windows || f.left != 0 {
		t.Errorf("%d commits in %d gather windows, %d documents left", s.Commits, windows, f.left)
	}
}

// A full ledger has as many documents on its way as it may, and no more: one alone has each of its changes in a commit of its own.
func TestLedgerFull_KeepsSoManyOnTheirWay(t *testing.T) {
	const docs, changes = 40, 9
	for atOnce, most := range map[int]uint64{1: docs * changes, 2: docs * changes, docs: docs * changes / 10} {
		f := newFlow(docs)
		s, err := onLedger(t.TempDir(), 2*time.Millisecond, 0, func(l *boltledger.Ledger) error {
			return f.keep(t.Context(), l, newLives(time.Now()).take(docs), atOnce)
		})
		must(t, err)
		if least := uint64(docs * changes / atOnce); s.Commits < least || s.Commits > most || f.left != 0 || len(f.queue) != 0 {
			t.Errorf("%d at once: %d commits instead of %d to %d, %d documents left", atOnce, s.Commits, least, most, f.left)
		}
	}
}

// grow writes the first documents of a set.
func grow(t *testing.T, name string, docs int, seed uint64) set {
	t.Helper()
	r := recipes()[name]
	r.docs = docs
	s := set{Name: name, Dir: t.TempDir(), Docs: docs}
	must(t, r.writeSet(t.Context(), name, seed, s.Dir))
	return s
}

// content is everything that lies in a folder.
func content(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		all[path], err = os.ReadFile(filepath.Join(dir, path))
		return err
	}))
	return all
}

func TestGen_TheSeedIsAllThatCounts(t *testing.T) {
	long, short, other := content(t, grow(t, "T", 30, 1).Dir), content(t, grow(t, "T", 10, 1).Dir), content(t, grow(t, "T", 10, 2).Dir)
	same := 0
	for path, data := range short {
		kit.Check(t, bytes.Equal(long[path], data), "%s differs between a set of 10 and the beginning of one of 30", path)
		if bytes.Equal(other[path], data) {
			same++
		}
	}
	if len(short) < 30 || same != 10 { // the ten empty markers
		t.Errorf("%d files, of which %d are the same with another seed", len(short), same)
	}
}

func TestGen_MeanSizes(t *testing.T) {
	const docs = 50
	for name, want := range map[string]float64{"S": 489_000, "T": 20_000} {
		s, n := grow(t, name, docs, 1), 0
		for _, data := range content(t, s.Dir) {
			n += len(data)
		}
		mean := float64(n) / docs
		kit.Check(t, mean >= 0.95*want && mean <= 1.05*want, "set %s: %.0f bytes a document instead of %.0f", name, mean, want)
	}
}

func TestGen_EveryFolderIsComplete(t *testing.T) {
	for name := range recipes() {
		docs := 10
		if name == "L" {
			docs = 1
		}
		if name == "L" && kit.Sampled(t, "folders of 95 MB") {
			continue // 95 MB
		}
		t.Run(name, func(t *testing.T) {
			for _, folder := range grow(t, name, docs, 1).folderPaths() {
				root, err := os.OpenRoot(folder)
				must(t, err)
				sealed, err := packager.ValidateFolder(t.Context(), root, packRules("fast"))
				if err := errors.Join(err, root.Close()); err != nil {
					t.Fatalf("%s: %v", folder, err)
				}
				kit.Check(t, sealed.Document.Number == filepath.Base(folder) && len(sealed.Files) != 0,
					"%s: %s with %d files", folder, sealed.Document.Number, len(sealed.Files))
			}
		})
	}
}

func TestGen_InvoicesAreXML(t *testing.T) {
	for _, folder := range grow(t, "T", 10, 1).folderPaths() {
		f, err := os.Open(filepath.Join(folder, "invoice.xml"))
		must(t, err)
		d, lines := xml.NewDecoder(f), 0
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "InvoiceLine" {
				lines++
			}
		}
		must(t, f.Close())
		kit.Check(t, lines >= 3, "%s has %d lines", folder, lines)
	}
}
