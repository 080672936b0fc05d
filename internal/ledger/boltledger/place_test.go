package boltledger_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// A ledger whose files are lost while it is open is noticed, and put back from
// what is open: whole, with its head, and without replacing anything. After it
// nothing is committed any more, and the next start knows everything.
func TestPutBack_I5_I15_FromTheOpenFile(t *testing.T) {
	gone := func(name string) func(dir string) error {
		return func(dir string) error { return os.Remove(pathIn(dir, name)) }
	}
	for name, row := range map[string]struct {
		lose  func(dir string) error
		wrong string // why it is not put back; empty: it is
	}{
		"Deleted":     {gone(fileName), ""},
		"HeadDeleted": {gone(headName), ""},
		"BothDeleted": {func(dir string) error { return errors.Join(gone(fileName)(dir), gone(headName)(dir)) }, ""},
		"MovedAway":   {func(dir string) error { return os.Rename(pathIn(dir, fileName), pathIn(dir, "old.db")) }, ""},
		"Replaced": {func(dir string) error {
			return errors.Join(gone(fileName)(dir), os.WriteFile(pathIn(dir, fileName), []byte("another"), 0o600))
		}, "another file is in the place of ledger.db"},
		"HeadReplaced": {func(dir string) error {
			return errors.Join(gone(headName)(dir), os.WriteFile(pathIn(dir, headName), []byte("another"), 0o600))
		}, "another file is in the place of ledger.head"},
		"OtherFolder": {func(dir string) error { return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700)) }, "another folder"},
		"NoFolder":    {func(dir string) error { return os.Rename(dir, dir+".old") }, "no such file"},
		"NotWhole": {func(dir string) error {
			return errors.Join(spoilFile(pathIn(dir, fileName), `"event":"claimed"`, `"event":"Claimed"`), gone(fileName)(dir))
		}, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newLedger(t)
			l := open(t, boltledger.Config{Dir: dir})
			newDoc(t, l, 1).archived()
			kit.Must(t, l.CheckPlace())
			kit.Must(t, row.lose(dir))
			_, isLost := errors.AsType[*ledger.LostError](l.CheckPlace())
			kit.Want(t, "lost", isLost, true)
			newDoc(t, l, 2).archived() // what was under way ends
			head := l.Head()
			err := l.PutBack(t.Context())
			if row.wrong != "" {
				kit.Need(t, err != nil, "put back, want %q", row.wrong)
				kit.Holds(t, "put back", err.Error(), row.wrong)
				kit.Must(t, l.Err())
				return
			}
			kit.Must(t, err)
			<-l.Failed()
			kit.Fails(t, "a commit after the copy", kit.Err(l.Apply(t.Context(), ledger.Change{})))
			l.Close()
			l = open(t, boltledger.Config{Dir: dir})
			kit.Want(t, "head of the copy", l.Head(), head)
			sound(t, l)
			kit.Want(t, "files left behind", copies(t, dir, ".*"), nil)
		})
	}
}

// spoilFile changes a text in a file that others have open.
func spoilFile(name, old, text string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	spoilt := bytes.ReplaceAll(b, []byte(old), []byte(text))
	if bytes.Equal(spoilt, b) {
		return errors.New("nothing to spoil")
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(spoilt, 0)
	return errors.Join(err, f.Close())
}
