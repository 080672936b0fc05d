package boltledger_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// An address that was wiped from its entry is in no backup, though pages of the
// ledger that are free now still hold it.
func TestBackup_I7_CarriesNothingThatWasWiped(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	var claims, sends, ends []ledger.Change
	for n := range 200 {
		d := newDoc(t, l, n)
		claims = append(claims, d.change(d.claim(), d.sealed(), ledger.RegisterIntended{}))
		d.e.Rev = 3
		sends = append(sends, d.change(d.ticket(), ledger.UploadIntended{}))
		d.e.Rev = 5
		ends = append(ends, d.change(d.accepted()))
	}
	for _, cs := range [][]ledger.Change{claims, sends, ends} {
		applied(t, l, cs...)
	}
	secret := []byte("sig=SECRET")
	whole, err := os.ReadFile(pathIn(dir, fileName))
	kit.Need(t, err == nil && bytes.Contains(whole, secret),
		"the ledger's own free pages hold no address (%v), want one to leave out", err)
	var b bytes.Buffer
	if n, err := l.Backup(t.Context(), &b, nil); err != nil || n != int64(b.Len()) || b.Len() >= len(whole) {
		t.Fatalf("%d bytes were written (%d returned, %v), want less than the %d of the ledger", b.Len(), n, err, len(whole))
	}
	kit.Check(t, !bytes.Contains(b.Bytes(), secret), "the backup holds %q, want no address that was wiped", secret)
	kit.Want(t, "files left behind", copies(t, dir, ".*"), nil)
	kit.Must(t, l.Close())
	to := copyLedger(t, dir, headName)
	kit.Must(t, os.WriteFile(pathIn(to, fileName), b.Bytes(), 0o600))
	kit.Want(t, "records of the backup", dump(t, to), dump(t, dir))
	sound(t, open(t, boltledger.Config{Dir: to}))
}

func TestBackup_ToldWhereItFails(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	r, w := io.Pipe()
	r.Close()
	_, err := l.Backup(t.Context(), w, nil)
	kit.Check(t, err != nil && strings.Contains(err.Error(), "back up ledger"), "backup to a closed pipe: %v, want an error that names it", err)
	kit.Want(t, "files left behind", copies(t, dir, ".*"), nil)
}

// A start removes what a crash left of copies and replacements. Files that only
// look like it stay, and so do the targets of links, and what is in another
// directory that a pattern of the path would match.
func TestSweep_I19_OnlyItsOwn(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "state[12]")
	other := filepath.Join(base, "state1")
	for _, d := range []string{dir, other, filepath.Join(dir, ".replacement"), filepath.Join(dir, ".replacement-mine"), filepath.Join(other, "real")} {
		kit.Must(t, os.MkdirAll(d, 0o700))
	}
	kit.Must(t, boltledger.Create(dir, info))
	ours := []string{".ledger.db.tmp", ".ledger.db-17.tmp", ".ledger.head.3.tmp", ".replacement/ledger.db", ".replacement/ledger.head.2", ".replacement/.ledger.head.2.tmp"}
	theirs := []string{".ledger.db-old.tmp", ".ledger.db..tmp", ".ledger.db.tmp.bak", ".ledger.head.03.tmp", ".replacement-mine/ledger.db"}
	write := func(dir string, names []string) {
		for _, name := range names {
			kit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
		}
	}
	write(dir, slices.Concat(ours, theirs))
	write(other, []string{".ledger.db.tmp", "real/ledger.db"})
	for link, to := range map[string]string{".replacement-5": filepath.Join(other, "real"), ".ledger.head.9.tmp": filepath.Join(other, "real/ledger.db")} {
		kit.Must(t, os.Symlink(to, filepath.Join(dir, link)))
		theirs = append(theirs, link)
	}
	open(t, boltledger.Config{Dir: dir})
	for _, name := range ours {
		kit.Fails(t, name+" is there", kit.Err(os.Lstat(filepath.Join(dir, name))))
	}
	for _, path := range []string{filepath.Join(other, ".ledger.db.tmp"), filepath.Join(other, "real/ledger.db")} {
		theirs = append(theirs, "../state1/"+filepath.ToSlash(path[len(other)+1:]))
	}
	for _, name := range theirs {
		kit.Want(t, name, kit.Err(os.Lstat(filepath.Join(dir, name))), nil)
	}
	kit.Fails(t, "the replacement that a crash left is there", kit.Err(os.Lstat(filepath.Join(dir, ".replacement"))))
}
