package boltledger_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

var (
	laterOn   = began.Add(48 * time.Hour)
	whyNote   = ledger.Note{Salt: [16]byte{5}, Text: "the disk died"}
	byAdmin   = ledger.Operator{UID: 7, Reason: whyNote.Digest()}
	restoring = ledger.Mark{By: byAdmin, At: laterOn}
)

// copyAll copies a state directory as a kill would leave it.
func copyAll(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	kit.Must(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		b, err := os.ReadFile(name)
		return errors.Join(err, os.WriteFile(filepath.Join(to, rel), b, 0o600))
	}))
	return to
}

// lived makes a ledger, a backup from the middle of its life, and what came
// after.
func lived(t *testing.T) (dir, backup string) {
	t.Helper()
	dir = newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	var ds []*doc
	for n := 1; n <= 12; n++ {
		d := newDoc(t, l, n)
		switch n % 6 {
		case 0:
			d.archived()
		case 1:
			d.do(d.claim())
		case 2:
			d.do(d.claim(), d.sealed(), ledger.RegisterIntended{}, d.ticket())
		case 3:
			d.do(d.claim(), d.sealed(), ledger.RegisterIntended{})
		case 4:
			d.do(d.claim(), d.sealed(), ledger.RegisterIntended{}, d.ticket(), ledger.UploadIntended{})
		default:
			d.do(d.claim(), d.sealed(), ledger.RegisterIntended{}, d.ticket(), ledger.UploadIntended{}, d.accepted())
		}
		ds = append(ds, d)
	}
	backup = filepath.Join(t.TempDir(), "backup.db")
	f := kit.Value(os.Create(backup))(t)
	kit.Value(l.Backup(t.Context(), f, nil))(t)
	f.Close()
	for _, d := range ds { // the lost part
		if d.e.State == ledger.Uploaded {
			d.do(d.success())
		}
	}
	newDoc(t, l, 100).archived()
	kit.Must(t, l.Close())
	return dir, backup
}

// inDoubt fails the test unless the ledger is in safe mode, and every entry
// that is not at rest as one that needs reconciling.
func inDoubt(t *testing.T, l *boltledger.Ledger, word string) {
	t.Helper()
	s, ok := l.SafeMode()
	kit.Need(t, ok && s.Mark == word, "safe mode = %+v, %v, want one that %s entered", s, ok, word)
	n := 0
	for _, e := range entriesOf(t, l) {
		if e.NeedsReconcile {
			n++
		} else if !e.IsAtRest() {
			t.Errorf("%s is %s/%s and does not need reconciling, want it to", e.Folder, e.State, e.Source)
		}
		step, _, due := ledger.Due(e)
		kit.Check(t, !due || step == ledger.Seal || step == ledger.Ask, "%s is due to %s, want nothing but %s or %s", e.Folder, step, ledger.Seal, ledger.Ask)
	}
	kit.Want(t, "entries that need reconciling", n, 10)
	sound(t, l)
}

// opened opens a backup for the test.
func opened(t *testing.T, path string) *os.File {
	t.Helper()
	f := kit.Value(os.Open(path))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestRestore_I15_InThePlaceOfWhateverIsThere(t *testing.T) {
	source, backup := lived(t)
	rows := map[string]struct {
		do   func(dir string) error
		kept bool
	}{
		"Newer":   {func(string) error { return nil }, true},
		"Missing": {func(dir string) error { return os.Remove(pathIn(dir, fileName)) }, false},
		"NothingAtAll": {func(dir string) error {
			return errors.Join(os.Remove(pathIn(dir, fileName)), os.Remove(pathIn(dir, headName)))
		}, false},
		"Truncated":      {func(dir string) error { return os.Truncate(pathIn(dir, fileName), 5000) }, true},
		"Empty":          {func(dir string) error { return os.Truncate(pathIn(dir, fileName), 0) }, true},
		"HeadMissing":    {func(dir string) error { return os.Remove(pathIn(dir, headName)) }, true},
		"HeadUnreadable": {func(dir string) error { return os.WriteFile(pathIn(dir, headName), make([]byte, 1024), 0o600) }, true},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			dir := copyAll(t, source)
			kit.Must(t, errors.Join(row.do(dir), os.WriteFile(pathIn(dir, openingName), nil, 0o600)))
			done, err := boltledger.Restore(t.Context(), boltledger.ReplacementConfig{Dir: dir, Backup: opened(t, backup), Epoch: 3, Mark: restoring, Note: &whyNote})
			kit.Must(t, err)
			kit.Fails(t, "the marker of the former ledger", kit.Err(os.Lstat(pathIn(dir, openingName))), os.ErrNotExist)
			kit.Check(t, (done.Kept != "") == row.kept && done.Unreconciled == 10 && done.Info.Epoch == 3,
				"restored %+v, want 10 unreconciled, epoch 3, kept: %v", done, row.kept)
			for _, kept := range copies(t, dir, fileName+".before-*") {
				kit.Want(t, "name of the former ledger", filepath.Base(kept), fileName+".before-restore-20261122T090000Z")
				kit.Want(t, "name that is reported", done.Kept, filepath.Base(kept))
			}
			for range 2 { // and after a restart
				l := open(t, boltledger.Config{Dir: dir})
				inDoubt(t, l, ledger.MarkRestored)
				s, _ := l.SafeMode()
				if l.Info().Epoch != 3 || l.Head() != done.Head || s != done.Safe || !s.Since.Equal(laterOn) || !s.KnownUntil.Equal(began.Add(12*time.Second)) {
					t.Errorf("after a start: %+v at %+v in %+v, want epoch 3 and what was reported: %+v", l.Info(), l.Head(), s, done)
				}
				kit.Want(t, "notes", kit.Value(l.Notes(archive.Key{}))(t)[1].Text, whyNote.Text)
				l.Close()
			}
			kit.Want(t, "files left behind", copies(t, dir, ".*"), nil)
		})
	}
}

func TestRestore_I15_RefusesWhatCannotStandIn(t *testing.T) {
	source, backup := lived(t)
	other := t.TempDir()
	foreign := info
	foreign.ID = "ledger-2"
	kit.Must(t, boltledger.Create(other, foreign))
	damaged := filepath.Join(t.TempDir(), "damaged.db")
	whole := kit.Value(os.ReadFile(backup))(t)
	spoilt := strings.Replace(string(whole), `"event":"created"`, `"event":"Created"`, 1)
	kit.Need(t, spoilt != string(whole), "nothing to spoil")
	os.WriteFile(damaged, []byte(spoilt), 0o600)
	rows := map[string]struct {
		c    boltledger.ReplacementConfig
		want string
	}{
		"Foreign": {boltledger.ReplacementConfig{Backup: opened(t, pathIn(other, fileName))}, `belongs to "ledger-1"`},

		"Damaged":            {boltledger.ReplacementConfig{Backup: opened(t, damaged)}, "damaged"},
		"NoLedger":           {boltledger.ReplacementConfig{Backup: opened(t, pathIn(source, headName))}, "damaged"},
		"Directory":          {boltledger.ReplacementConfig{Backup: opened(t, source)}, "regular"},
		"NoteIsNotTheReason": {boltledger.ReplacementConfig{Backup: opened(t, backup), Note: &ledger.Note{Text: "other"}}, "reason"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			dir := copyAll(t, source)
			row.c.Dir, row.c.Mark = dir, restoring
			if row.c.Note == nil {
				row.c.Note = &whyNote
			}
			_, err := boltledger.Restore(t.Context(), row.c)
			kit.Need(t, err != nil && strings.Contains(err.Error(), row.want),
				"restore: %v, want an error that tells of %q", err, row.want)
			kit.Want(t, "files left behind", append(copies(t, dir, ".*"), copies(t, dir, "*.before-*")...), nil)
			l := open(t, boltledger.Config{Dir: dir}) // untouched, and unlocked
			s, safe := l.SafeMode()
			kit.Check(t, !safe, "safe mode = %+v, want none", s)
			sound(t, l)
		})
	}
	restore := func(dir string) error {
		return kit.Err(boltledger.Restore(t.Context(), boltledger.ReplacementConfig{Dir: dir, Backup: opened(t, backup), Mark: restoring, Note: &whyNote}))
	}
	dir := copyAll(t, source)
	kit.Must(t, os.MkdirAll(pathIn(dir, ".replacement/mine"), 0o700))
	kit.Holds(t, "over another's file", restore(dir).Error(), `.replacement/mine" is in the way`)
	dir = t.TempDir()
	kit.Must(t, os.Mkdir(pathIn(dir, fileName), 0o700))
	kit.Holds(t, "over a folder", restore(dir).Error(), "ledger.db is not a regular file: move it") // the backup is not damaged
	l := open(t, boltledger.Config{Dir: source})
	defer l.Close()
	kit.Fails(t, "over a ledger in use", restore(source), ledger.ErrLocked)
}

// The state directory is copied at each commit and each naming of a restore,
// just before and just after it. Each copy is the old ledger or the new one,
// wholly.
func TestRestore_I15_ACrashLeavesTheOldOrTheNew(t *testing.T) {
	source, backup := lived(t)
	for name, row := range map[string]struct {
		do  func(dir string) error
		old error // of opening what was there; nil: it opens
	}{
		"OverANewerOne":  {func(string) error { return nil }, nil},
		"OverNone":       {func(dir string) error { return os.Remove(pathIn(dir, fileName)) }, ledger.ErrMissing},
		"HeadUnreadable": {func(dir string) error { return os.WriteFile(pathIn(dir, headName), nil, 0o600) }, &ledger.DamageError{}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyAll(t, source)
			kit.Must(t, row.do(dir))
			var crashed []string
			fault := func(string) error { crashed = append(crashed, copyAll(t, dir)); return nil }
			if _, err := boltledger.Restore(t.Context(), boltledger.ReplacementConfig{Dir: dir, Backup: opened(t, backup), Mark: restoring, Note: &whyNote, Fault: fault}); err != nil {
				t.Fatal(err)
			}
			befores, afters := 0, 0
			for i, crash := range crashed {
				l, err := boltledger.Open(boltledger.Config{Dir: crash})
				var d *ledger.DamageError
				switch {
				case err != nil && (errors.Is(err, row.old) && row.old != nil || errors.As(row.old, &d) && errors.As(err, &d)):
					befores++
				case err != nil:
					t.Errorf("copy %d: %v", i, err)
				default:
					if _, safe := l.SafeMode(); safe {
						afters++
						inDoubt(t, l, ledger.MarkRestored)
					} else {
						befores++
						sound(t, l)
					}
					l.Close()
					kit.Want(t, fmt.Sprintf("files left behind in copy %d", i), copies(t, crash, ".*"), nil)
				}
				if err != nil { // the same command again goes through
					if _, err := boltledger.Restore(t.Context(), boltledger.ReplacementConfig{Dir: crash, Backup: opened(t, backup), Mark: restoring, Note: &whyNote}); err != nil {
						t.Errorf("copy %d: again: %v", i, err)
					}
				}
			}
			kit.Check(t, befores >= 4 && afters == 1,
				"%d copies have the old ledger and %d the new one, want 4 at least and 1", befores, afters)
		})
	}
}

// A restore begins a new incarnation of the ledger. The file that it replaced
// stays an older one, though it has more lines, and no head of an earlier
// incarnation and no copy of a head counts for the new one.
func TestRestore_I15_TheFormerFileIsAnOlderOne(t *testing.T) {
	source, backup := lived(t)
	done, err := boltledger.Restore(t.Context(), boltledger.ReplacementConfig{Dir: source, Backup: opened(t, backup), Mark: restoring, Note: &whyNote})
	kit.Must(t, err)
	kit.Must(t, open(t, boltledger.Config{Dir: source}).Close()) // makes the head of the new one
	kit.Want(t, "heads", len(copies(t, source, "ledger.head.*")), 2)
	const second = "ledger.head.2"
	copyTo := func(from, to string) func(string) error {
		return func(dir string) error {
			b, err := os.ReadFile(pathIn(dir, from))
			return errors.Join(err, os.WriteFile(pathIn(dir, to), b, 0o600))
		}
	}
	write := func(name string) func(string) error {
		return func(dir string) error { return os.WriteFile(pathIn(dir, name), []byte("x"), 0o600) }
	}
	for name, row := range map[string]struct {
		do   func(dir string) error
		want string // part of the error; empty: it opens
	}{
		"TheNewOne":         {func(string) error { return nil }, ""},
		"FormerFile":        {copyTo(done.Kept, fileName), second},
		"HeadNotMadeYet":    {func(dir string) error { return os.Remove(pathIn(dir, second)) }, ""},
		"FormerHeadGone":    {func(dir string) error { return os.Remove(pathIn(dir, headName)) }, ""},
		"FormerHeadSpoiled": {write(headName), ""},
		"HeadSpoiled":       {write(second), "no readable record"},
		"LaterHeadSpoiled":  {write("ledger.head.3"), "no readable record"},
		"OtherName":         {copyTo(second, "ledger.head.003"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyAll(t, source)
			kit.Must(t, row.do(dir))
			l, err := boltledger.Open(boltledger.Config{Dir: dir})
			if row.want == "" {
				kit.Must(t, err)
				inDoubt(t, l, ledger.MarkRestored)
				kit.Must(t, l.Close())
				return
			}
			kit.Need(t, err != nil && strings.Contains(err.Error(), row.want), "open: %v, want an error with %q", err, row.want)
			if !errors.Is(err, ledger.ErrRolledBack) {
				return
			}
			mark := ledger.Mark{By: ledger.Operator{UID: ledger.VaultdUID}, At: laterOn}
			l = kit.Value(boltledger.OpenRolledBack(boltledger.Config{Dir: dir}, mark))(t)
			s, _ := l.SafeMode()
			kit.Want(t, "safe mode", s.Mark, ledger.MarkRolledBack)
			kit.Must(t, l.Close())
			kit.Must(t, open(t, boltledger.Config{Dir: dir}).Close())
			kit.Want(t, "heads", len(copies(t, dir, "ledger.head.*")), 3)
		})
	}
	// A second restore of the same backup: the numbers go on, also over a head that cannot be read.
	kit.Must(t, write("ledger.head.7")(source))
	_, err = boltledger.Restore(t.Context(), boltledger.ReplacementConfig{Dir: source, Backup: opened(t, backup), Mark: restoring, Note: &whyNote})
	kit.Must(t, err)
	l := open(t, boltledger.Config{Dir: source})
	kit.Want(t, "head of the second restore", len(copies(t, source, "ledger.head.8")), 1)
	newDoc(t, l, 300).archived()
	kit.Must(t, errors.Join(l.Close(), copyTo(headName, "ledger.head.99")(source))) // somebody's own copy
	kit.Must(t, open(t, boltledger.Config{Dir: source}).Close())
	kit.Must(t, os.Remove(pathIn(source, "ledger.head.8")))
	_, err = boltledger.Open(boltledger.Config{Dir: source})
	kit.Check(t, err != nil && strings.Contains(err.Error(), "ledger.head.8 is missing"), "open without its head: %v, want it missed", err)
}

// The machine is set back to a snapshot, and only the head outside knows
// better.
func TestOpenRolledBack_I15_EntersSafeModeWhollyOrNotAtAll(t *testing.T) {
	source, backup := lived(t)
	b, err := os.ReadFile(backup)
	if err == nil {
		err = os.WriteFile(pathIn(source, fileName), b, 0o600)
	}
	kit.Must(t, err)
	_, err = boltledger.Open(boltledger.Config{Dir: source})
	kit.Need(t, errors.Is(err, ledger.ErrRolledBack), "open: %v, want %v", err, ledger.ErrRolledBack)
	mark := ledger.Mark{By: ledger.Operator{UID: ledger.VaultdUID}, At: laterOn}
	dir := copyAll(t, source)
	var crashed []string
	fault := func(string) error { crashed = append(crashed, copyAll(t, dir)); return nil }
	l := kit.Value(boltledger.OpenRolledBack(boltledger.Config{Dir: dir, Fault: fault}, mark))(t)
	inDoubt(t, l, ledger.MarkRolledBack)
	if s, _ := l.SafeMode(); !strings.Contains(s.Cause, "the outside head was at line") || !s.KnownUntil.Equal(began.Add(12*time.Second)) {
		t.Errorf("safe mode = %+v, want it known until %v, and the line of the outside head", s, began.Add(12*time.Second))
	}
	d := newDoc(t, l, 200)
	d.do(d.claim())
	l.Close()
	befores, afters := 0, 0
	for i, crash := range crashed {
		for again := range 2 { // a second crash in what the first one left
			l, err := boltledger.Open(boltledger.Config{Dir: crash})
			if errors.Is(err, ledger.ErrRolledBack) && again == 0 {
				befores++
				if l, err = boltledger.OpenRolledBack(boltledger.Config{Dir: crash}, mark); err == nil {
					inDoubt(t, l, ledger.MarkRolledBack)
				}
			} else if err == nil && again == 0 {
				afters++
				if i < len(crashed)-2 {
					inDoubt(t, l, ledger.MarkRolledBack)
				}
			}
			kit.Need(t, err == nil, "copy %d: %v", i, err)
			l.Close()
		}
	}
	kit.Check(t, befores != 0 && afters >= 3,
		"%d copies are still rolled back and %d in safe mode, want 1 and 3 at least", befores, afters)
	l = open(t, boltledger.Config{Dir: dir})
	sound(t, l)
	if _, err := boltledger.OpenRolledBack(boltledger.Config{Dir: newLedger(t)}, mark); err != nil { // as Open does
		t.Error(err)
	}
}

// A rebuild fills a new ledger while the old one stays in its place.
func TestReplace_I15_RebuiltFromNothing(t *testing.T) {
	source, _ := lived(t)
	os.Truncate(pathIn(source, fileName), 3000)
	fresh := info
	fresh.Epoch = 2
	c := boltledger.ReplacementConfig{Dir: source, Info: fresh, Mark: ledger.Mark{Name: ledger.MarkRebuilt, By: byAdmin, At: laterOn}, Note: &whyNote}
	r, err := boltledger.BeginReplacement(t.Context(), c)
	kit.Must(t, err)
	if s, ok := r.Ledger.SafeMode(); !ok || s.Mark != ledger.MarkRebuilt || !s.KnownUntil.IsZero() || r.Ledger.Info().Epoch != 2 {
		t.Errorf("safe mode = %+v, %v in epoch %d, want a rebuilt ledger of epoch 2", s, ok, r.Ledger.Info().Epoch)
	}
	d := newDoc(t, r.Ledger, 7)
	seal := d.sealed()
	recovered := ledger.Recovered{
		Route: ledger.Vault, Vault: "V1", Drop: "acme", Folder: "Müller 7", State: ledger.Archived, Source: ledger.Kept, Dest: "_archived/x",
		ID: seal.ID, Content: seal.Content, Metadata: seal.Metadata, Package: seal.Package, Seal: seal.Seal, Remote: "bum-7", SuccessRecord: []byte("{}"), ArchivedAt: began,
	}
	change := d.change(recovered)
	if rs, err := r.Ledger.Apply(t.Context(), change); err != nil || !errors.Is(rs[0].Err, ledger.ErrIllegal) {
		t.Errorf("without its document: %v (%v), want %v", rs, err, ledger.ErrIllegal)
	}
	change.Document = &d.own
	if rs, err := r.Ledger.Apply(t.Context(), change); err != nil || rs[0].Err != nil || !rs[0].Entry.NeedsReconcile {
		t.Fatalf("recovered %+v (%v), want an entry that needs reconciling", rs, err)
	}
	twice, gone := newDoc(t, r.Ledger, 8), newDoc(t, r.Ledger, 9)
	recovered = ledger.Recovered{Vault: "V1", State: ledger.Archived, Source: ledger.Gone, Remote: "bum-7", SuccessRecord: []byte("{}"), ArchivedAt: began}
	var taken *ledger.TakenError
	if err := twice.try(recovered); !errors.As(err, &taken) || taken.By != d.e.Key {
		t.Errorf("a number twice: %v, want it taken by %s", err, d.e.Key)
	}
	recovered.Remote = "bum-9"
	gone.do(recovered)
	adopted := newDoc(t, r.Ledger, 10)
	adopted.do(adopted.claim(), ledger.ReconcileRequired{})
	sound(t, r.Ledger)
	kept, err := r.Commit(t.Context())
	if err = errors.Join(err, r.Discard()); err != nil || kept == "" {
		t.Fatalf("the former ledger is kept as %q (%v), want a name", kept, err)
	}
	l := open(t, boltledger.Config{Dir: source})
	sound(t, l)
	if _, ok := l.SafeMode(); !ok || len(entriesOf(t, l)) != 3 || l.Balance().States[ledger.Archived] != 2 {
		t.Errorf("safe mode %v, %s, want it, and 2 of 3 entries archived", ok, l.Balance())
	}
	kit.Check(t, !l.LastSuccess().IsZero(), "the last success is not known, want it")

	c.Dir = t.TempDir()
	r = kit.Value(boltledger.BeginReplacement(t.Context(), c))(t)
	kit.Want(t, "the error of Join", errors.Join(r.Discard(), r.Discard()), nil)
	kit.Want(t, "files left behind", copies(t, c.Dir, "*"), nil)
}
