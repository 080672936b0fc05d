package selfcheck

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

var began = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// place is a ledger and the time there.
type place struct {
	*fill.Ledger
	t   *testing.T
	now time.Time
}

func newPlace(t *testing.T, id string) *place {
	return &place{fill.New(t, boltledger.Config{}, ledger.Info{ID: id, Created: began}), t, began}
}

func (p *place) close() {
	p.t.Helper()
	kit.Must(p.t, p.Close())
}

// send takes a document up to its upload.
func (p *place) send() *fill.Item {
	p.t.Helper()
	p.now = p.now.Add(time.Minute)
	it := p.Item(fmt.Sprint("Otto ", p.Info().ID, " ", p.Count()))
	it.Store(p.now.Add(-2 * time.Second))
	return it
}

// finish takes a sent document to rest.
func (p *place) finish(it *fill.Item) *fill.Item {
	p.t.Helper()
	e := it.Archive(p.now, 0)
	kit.Need(p.t, e.IsAtRest(), "%s is %s and not at rest", e.Key, e.State)
	return it
}

func (p *place) how() Verification {
	return Verification{StateDir: p.Dir, Program: "1.2.0", Now: func() time.Time { return p.now }}
}

func (p *place) verify(how Verification) Verified {
	p.t.Helper()
	v := kit.Value(how.Verify(p.t.Context(), p.Ledger.Ledger))(p.t)
	return v
}

func (p *place) whole() Verification {
	how := p.how()
	how.Whole = true
	return how
}

func (p *place) verifyWhole() Verified {
	p.t.Helper()
	return p.verify(p.whole())
}

// edit changes the ledger's file behind its back.
func (p *place) edit(fn func(tx *bbolt.Tx) error) {
	p.t.Helper()
	p.close()
	db := kit.Value(bbolt.Open(filepath.Join(p.Dir, "ledger.db"), 0o600, nil))(p.t)
	kit.Must(p.t, errors.Join(db.Update(fn), db.Close()))
	p.Open()
}

func flip(bucket string, key archive.Key) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		v := bytes.Clone(tx.Bucket([]byte(bucket)).Get(key[:]))
		v[len(v)/2] ^= 4
		return tx.Bucket([]byte(bucket)).Put(key[:], v)
	}
}

// A verification goes on from the one before: it reads what came since, says what it rests on, and comes to the result that
// reading everything comes to.
func TestVerify_I14_GoesOnFromItsCheckpoint(t *testing.T) {
	p := newPlace(t, "ledger-1")
	var sent []*fill.Item
	for round := range 5 {
		for range 6 {
			sent = append(sent, p.send())
		}
		before := p.Head()
		v := p.verify(p.how())
		kit.Need(t, v.OK() && v.NotUsed == "" && v.NotSaved == "" && (v.Basis != nil) == (round > 0) && v.Report.Head == before,
			"round %d: %+v", round, v)
		if w := p.verifyWhole(); w.Basis != nil || w.Report.Balance != v.Report.Balance || w.Report.Sample != v.Report.Sample || w.Report.LostPosts != v.Report.LostPosts {
			t.Fatalf("round %d: %+v, the whole: %+v", round, v.Report, w.Report)
		}
		for _, e := range sent[:4] {
			p.finish(e)
		}
		sent = sent[4:]
		again := p.verify(p.how())
		if b := again.Basis; b == nil || b.Line != before.N || b.Hash != before.Hash || !b.Whole.Equal(p.now) || again.Lines != 12 || !again.OK() {
			t.Fatalf("round %d: %+v", round, again)
		}
		if all := again.Report.Balance.Seen; again.Report.Entries+again.Resting != all || again.Report.Entries != uint64(len(sent)+4) {
			t.Errorf("round %d: %d read and %d not, of %d", round, again.Report.Entries, again.Resting, all)
		}
	}
}

// A checkpoint that is damaged, or of another ledger, program or time, is not used: everything is read, and that is said.
func TestVerify_I14_ACheckpointThatCannotBeUsed(t *testing.T) {
	p, other := newPlace(t, "ledger-1"), newPlace(t, "ledger-2")
	p.finish(p.send())
	other.finish(other.send())
	p.verify(p.how())
	other.verify(other.how())
	name := filepath.Join(p.Dir, CheckpointName)
	sound := kit.Value(os.ReadFile(name))(t)
	foreign := kit.Value(os.ReadFile(filepath.Join(other.Dir, CheckpointName)))(t)
	write := func(b []byte) func(*Verification) {
		return func(*Verification) {
			kit.Must(t, os.WriteFile(name, b, 0o600))
		}
	}
	rows := map[string]func(*Verification){
		"Empty": write(nil), "Foreign": write(foreign), "Longer": write(append(bytes.Clone(sound), 'x')), "Text": write([]byte("hello\nworld\n")),
		"OtherProgram": func(v *Verification) { v.Program = "1.3.0" },
		"TooOld":       func(v *Verification) { v.Now = func() time.Time { return p.now.Add(maxAge + time.Second) } },
		"FromLater":    func(v *Verification) { v.Now = func() time.Time { return p.now.Add(-time.Second) } },
		"Link": func(*Verification) {
			kit.Must(t, errors.Join(os.Rename(name, name+".x"), os.Symlink(name+".x", name)))
		},
		"Directory": func(*Verification) {
			kit.Must(t, errors.Join(os.Remove(name), os.Mkdir(name, 0o700)))
		},
	}
	for at := 0; at < len(sound); at += len(sound)/40 + 1 {
		bad := bytes.Clone(sound)
		bad[at] ^= 1
		rows[fmt.Sprint("Flipped", at)], rows[fmt.Sprint("Cut", at)] = write(bad), write(sound[:at])
	}
	for what, spoil := range rows {
		write(sound)(nil)
		if v := p.verify(p.how()); v.Basis == nil || !v.OK() {
			t.Fatalf("%s: the sound one is not used: %s", what, v.NotUsed)
		}
		how := p.how()
		spoil(&how)
		v := p.verify(how)
		if v.Basis != nil || v.NotUsed == "" || !v.OK() || v.Report.Entries != 1 {
			t.Errorf("%s: rests on %+v, %q, %t", what, v.Basis, v.NotUsed, v.OK())
		}
		kit.Must(t, errors.Join(os.RemoveAll(name), os.RemoveAll(name+".x")))
	}
	if v := p.verify(p.how()); v.Basis != nil || v.NotUsed != "" || !v.OK() {
		t.Errorf("without a checkpoint: %+v, %q", v.Basis, v.NotUsed)
	}
}

// Damage in what came since is found, and then everything is read. Damage in what was verified before and is at rest is not, and
// reading everything finds it.
func TestVerify_I14_WhatItReadsAndWhatNot(t *testing.T) {
	for name, row := range map[string]struct {
		damage func(rest, open, late *fill.Item) func(tx *bbolt.Tx) error
		seen   bool
	}{
		"RestingEntry":    {func(rest, _, _ *fill.Item) func(*bbolt.Tx) error { return flip("done", rest.Key) }, false},
		"RestingDocument": {func(rest, _, _ *fill.Item) func(*bbolt.Tx) error { return flip("doc", rest.Key) }, false},
		"OpenEntry":       {func(_, open, _ *fill.Item) func(*bbolt.Tx) error { return flip("open", open.Key) }, true},
		"OpenDocument":    {func(_, open, _ *fill.Item) func(*bbolt.Tx) error { return flip("doc", open.Key) }, true},
		"NewEntry":        {func(_, _, late *fill.Item) func(*bbolt.Tx) error { return flip("done", late.Key) }, true},
		"NewDocument":     {func(_, _, late *fill.Item) func(*bbolt.Tx) error { return flip("doc", late.Key) }, true},
		"NewEntryGone": {func(_, _, late *fill.Item) func(*bbolt.Tx) error {
			return func(tx *bbolt.Tx) error { return tx.Bucket([]byte("done")).Delete(late.Key[:]) }
		}, true},
		"OpenEntryGone": {func(_, open, _ *fill.Item) func(*bbolt.Tx) error {
			return func(tx *bbolt.Tx) error { return tx.Bucket([]byte("open")).Delete(open.Key[:]) }
		}, true},
		"DueGone": {func(_, _, _ *fill.Item) func(*bbolt.Tx) error {
			return func(tx *bbolt.Tx) error {
				k, _ := tx.Bucket([]byte("due")).Cursor().First()
				return tx.Bucket([]byte("due")).Delete(bytes.Clone(k))
			}
		}, true},
	} {
		p := newPlace(t, "ledger-1")
		rest, open := p.finish(p.send()), p.send()
		p.verify(p.how())
		p.edit(row.damage(rest, open, p.finish(p.send())))
		v := p.verify(p.how())
		if v.OK() == row.seen || row.seen != (v.Basis == nil) || row.seen != (v.NotUsed != "") || !row.seen && v.Resting != 1 {
			t.Errorf("%s: rests on %+v (%s), %d not read: %v %v", name, v.Basis, v.NotUsed, v.Resting, v.Problems, v.Report.Findings)
		}
		w := p.verifyWhole()
		kit.Check(t, !w.OK(), "%s: nobody finds it", name)
	}
}

// An entry that was at rest and changed is more than the checkpoint can tell of: everything is read.
func TestVerify_I14_AnEntryAtRestThatChanged(t *testing.T) {
	p := newPlace(t, "ledger-1")
	it := p.finish(p.send())
	p.verify(p.how())
	it.Apply(p.now, ledger.Held{By: ledger.Operator{UID: 7}})
	if v := p.verify(p.how()); v.Basis != nil || !strings.Contains(v.NotUsed, "at rest") || !v.OK() {
		t.Errorf("rests on %+v, %q, %v", v.Basis, v.NotUsed, v.Problems)
	}
	v := p.verify(p.how())
	kit.Check(t, v.Basis != nil && v.OK(), "and then: %q", v.NotUsed)
}

// I1: an entry of which no line tells is named: where something differs, the ledger is read once more by a check that remembers
// every entry.
func TestVerify_I1_NamesAnEntryWithoutALine(t *testing.T) {
	p, other := newPlace(t, "ledger-1"), newPlace(t, "ledger-2")
	p.finish(p.send())
	other.send()
	stray := other.finish(other.send())
	var record []byte
	other.edit(func(tx *bbolt.Tx) error {
		record = bytes.Clone(tx.Bucket([]byte("done")).Get(stray.Key[:]))
		return nil
	})
	p.edit(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("done")).Put(stray.Key[:], record) })
	v := p.verifyWhole()
	text := fmt.Sprint(v.Report.Findings)
	kit.Holds(t, "the findings", text, stray.Key.String()+": there is an entry, but no line of the journal")
}

// A ledger with another past than the one that was verified differs, though its chain is sound: nobody put it back by vaultd.
func TestVerify_I15_APastThatWasWrittenAnew(t *testing.T) {
	p := newPlace(t, "ledger-1")
	p.send()
	p.close()
	former := map[string][]byte{}
	for _, name := range []string{"ledger.db", "ledger.head.1"} {
		b := kit.Value(os.ReadFile(filepath.Join(p.Dir, name)))(t)
		former[name] = b
	}
	p.Open()
	p.finish(p.send())
	p.verify(p.how())
	p.close()
	for name, b := range former {
		kit.Must(t, os.WriteFile(filepath.Join(p.Dir, name), b, 0o600))
	}
	p.Open()
	for round := range 6 {
		how := p.how()
		if how.Whole = round%2 == 1; round > 3 {
			how.Program = "1.3.0"
		}
		v := p.verify(how)
		if v.OK() || v.Basis != nil || len(v.Problems)+len(v.Report.Findings) > 0 || !strings.Contains(v.OtherPast, "no line tells that the ledger was put back") {
			t.Fatalf("round %d: %q %+v %q", round, v.OtherPast, v.Problems, v.NotUsed)
		}
		p.finish(p.send())
	}
	// The daemon's check does not stop the work for it, and leaves the evidence.
	c := &Checker{Verification: p.whole(), Ledger: p.Ledger.Ledger}
	found, err := c.checkLedger(t.Context())
	kit.Check(t, err == nil && len(found) <= 0, "the daemon's check found %v (%v), want nothing", found, err)
	v := p.verify(p.how())
	kit.Check(t, v.OtherPast != "", "another past after the daemon's check: none, want the evidence kept")
	kit.Must(t, os.Remove(filepath.Join(p.Dir, CheckpointName)))
	if v := p.verify(p.how()); !v.OK() {
		t.Errorf("without a checkpoint: problems %v, findings %v, want none", v.Problems, v.Report.Findings)
	}
}

// Where nothing can be written, the verdict is the same, and says that no checkpoint is left.
func TestVerify_I26_SaysThatNoCheckpointIsLeft(t *testing.T) {
	p := newPlace(t, "ledger-1")
	p.send()
	how := p.how()
	how.StateDir = filepath.Join(p.Dir, "gone")
	v := p.verify(how)
	kit.Check(t, v.OK() && v.NotSaved != "", "problems = %v, not saved: %q, want none, and an error", v.Problems, v.NotSaved)
}

// A check during the work of a daemon must not take its progress for a fault.
func TestVerify_WhileEntriesChange(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "ledger-1")
	p.finish(p.send())
	p.send()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 100; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			p.Apply(t.Context(), ledger.Change{Key: fill.Key(began, n), At: archive.Instant{Wall: began}, //nolint:errcheck // the check is what counts
				Events: []ledger.Event{ledger.ClaimedFolder{Vault: "V-1", Drop: "acme-in", Folder: "more"}, ledger.StillChanging{}}})
		}
	}()
	defer func() { close(stop); <-done }()
	rounds := 40
	if kit.Sampled(t, "40 checks") {
		rounds = 13
	}
	for n := range rounds {
		how := p.how()
		how.Whole = n%4 == 0
		v := kit.Value(how.VerifyCopy(t.Context(), p.Ledger.Ledger, 0))(t)
		kit.Need(t, v.OK(), "%+v", v)
	}
}

// canClone reports whether files of a folder can share their blocks, as on XFS.
func canClone(t *testing.T, dir string) bool {
	t.Helper()
	from, to := kit.Value(os.CreateTemp(dir, ""))(t), kit.Value(os.CreateTemp(dir, ""))(t)
	defer from.Close()
	defer to.Close()
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil
}

// A check for whose copy there is no room says so. It finds nothing, and leaves no checkpoint to go on from.
func TestCheck_I26_NoRoomForACopy(t *testing.T) {
	p := newPlace(t, "ledger-1")
	if canClone(t, p.Dir) {
		t.Skipf("the file system of %s clones files, and a clone needs no room", p.Dir)
	}
	c := &Checker{Verification: p.whole(), Ledger: p.Ledger.Ledger, MinFree: math.MaxInt64 / 2}
	r := c.Check(t.Context())
	kit.Holds(t, "why it was not made", r.Failed, "no room", p.Dir)
	kit.Want(t, "findings", len(r.Ledger), 0)
	kit.Want(t, "may pass", r.MayPass, true)
	kit.Fails(t, "a checkpoint", kit.Err(os.Lstat(filepath.Join(p.Dir, CheckpointName))), os.ErrNotExist)
}

// Damage that keeps the copy from being opened, or from being made, is a finding
// about the ledger.
func TestCheck_I15_ACopyThatCannotBeOpened(t *testing.T) {
	for name, spoil := range map[string]func(*place){
		"Pages":  (*place).spoilPages,
		"CutOff": func(p *place) { kit.Must(p.t, os.Truncate(filepath.Join(p.Dir, "ledger.db"), 4*4096)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, "ledger-1")
			p.finish(p.send())
			c := &Checker{Verification: p.whole(), Ledger: p.Ledger.Ledger}
			spoil(p)
			r := c.Check(t.Context())
			kit.Check(t, len(r.Ledger) > 0 && r.Failed == "", "the check found %q and failed with %q, want damage found", r.Ledger, r.Failed)
		})
	}
}

// spoilPages damages every page but the two of the head, behind the back of the daemon.
func (p *place) spoilPages() {
	p.t.Helper()
	name := filepath.Join(p.Dir, "ledger.db")
	b := kit.Value(os.ReadFile(name))(p.t)
	for at := 2 * 4096; at < len(b); at += 4096 {
		b[at] ^= 0xff // its number
	}
	f := kit.Value(os.OpenFile(name, os.O_WRONLY, 0))(p.t)
	_, err := f.WriteAt(b, 0)
	kit.Must(p.t, errors.Join(err, f.Close()))
}
