package boltledger_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// A start removes what a crash left of copies and replacements. Files that only
// look like it stay, and so do the targets of links, and what is in another
// directory that a pattern of the path would match.
func TestSweep_I19_OnlyItsOwn(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "state[12]")
	other := filepath.Join(base, "state1")
	for _, d := range []string{dir, other, filepath.Join(dir, ".replacement-77"), filepath.Join(dir, ".replacement-mine"), filepath.Join(other, "real")} {
		kit.Must(t, os.MkdirAll(d, 0o700))
	}
	kit.Must(t, boltledger.Create(dir, info))
	ours := []string{".ledger.db-1.tmp", ".ledger.head-22.tmp", ".replacement-77/ledger.db", ".replacement-77/ledger.head", ".replacement-77/.ledger.head-3.tmp"}
	theirs := []string{".ledger.db-old.tmp", ".ledger.db-.tmp", ".ledger.db-1.tmp.bak", ".replacement-mine/ledger.db"}
	write := func(dir string, names []string) {
		for _, name := range names {
			kit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
		}
	}
	write(dir, slices.Concat(ours, theirs))
	write(other, []string{".ledger.db-1.tmp", "real/ledger.db"})
	for link, to := range map[string]string{".replacement-5": filepath.Join(other, "real"), ".ledger.db-9.tmp": filepath.Join(other, "real/ledger.db")} {
		kit.Must(t, os.Symlink(to, filepath.Join(dir, link)))
		theirs = append(theirs, link)
	}
	open(t, boltledger.Config{Dir: dir})
	for _, name := range ours {
		kit.Fails(t, name+" is there", kit.Err(os.Lstat(filepath.Join(dir, name))))
	}
	for _, path := range []string{filepath.Join(other, ".ledger.db-1.tmp"), filepath.Join(other, "real/ledger.db")} {
		theirs = append(theirs, "../state1/"+filepath.ToSlash(path[len(other)+1:]))
	}
	for _, name := range theirs {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v, want it untouched", name, err)
		}
	}
	kit.Fails(t, "the replacement that a crash left is there", kit.Err(os.Lstat(filepath.Join(dir, ".replacement-77"))))
}
