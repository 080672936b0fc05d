package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
)

// replaced puts a folder into the place of the spool in which a file of each name lies with that content, and returns a check that they all stay as
// they are. The spool itself is at away then; an empty away says that it is gone.
func replaced(t *testing.T, spool, away, content string, names ...string) (stays func()) {
	t.Helper()
	gone := os.RemoveAll
	if away != "" {
		gone = func(dir string) error { return os.Rename(dir, away) }
	}
	if err := errors.Join(gone(spool), os.Mkdir(spool, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(spool, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		left, err := os.ReadDir(spool)
		if err != nil || len(left) != len(names) {
			t.Errorf("left in the other folder: %v %v, want %q", left, err, names)
		}
		for _, name := range names {
			if text, err := os.ReadFile(filepath.Join(spool, name)); err != nil || string(text) != content {
				t.Errorf("%s in the other folder: %q, %v", name, text, err)
			}
		}
	}
}

// Where another folder lies in the place of the spool, none of its files is taken for a package, and none is removed. What is missing
// there is not made again.
func TestSpool_I3_I19_AnotherFolderInItsPlace(t *testing.T) {
	const theirs = "theirs"
	base := t.TempDir()
	dir, away := filepath.Join(base, "spool"), filepath.Join(base, "away")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := spoolAt(t, dir)
	keys := make([]archive.Key, 4)
	for i := range keys {
		if keys[i] = archive.NewKey(time.UnixMilli(int64(i + 1))); i < 3 { // the last one is missing
			lies(t, s, keys[i], len(theirs))
		}
	}
	sweep := func(kept archive.Key) {
		t.Helper()
		if err := s.sweep(context.Background(), func(k archive.Key) (archive.VaultID, bool, error) { return "V", k == kept || kept.IsZero(), nil }); err != nil {
			t.Fatal(err)
		}
	}
	sweep(archive.Key{})
	recorded := archive.Package{Size: int64(len(theirs))}
	stays := replaced(t, dir, away, theirs, packageName(keys[0]), packageName(keys[1]), packageName(keys[2]), packageName(keys[3]), "."+packageName(keys[1])+".tmp", downloadName(7))
	for _, k := range keys {
		if p, err := s.spooled(k, recorded); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "restart vaultd") {
			t.Errorf("%s: %+v, %v", k, p, err)
		}
	}
	if err := s.room("V"); err == nil || errors.Is(err, ingest.ErrFull) {
		t.Errorf("room: %v", err)
	}
	recorded.SHA256 = archive.Sum(make([]byte, recorded.Size))
	if is, err := s.intact(t.Context(), keys[2], recorded, func(time.Duration) error { return nil }); !is || err != nil {
		t.Errorf("what lies in its place was examined: %v, %v", is, err)
	}
	if err := s.drop(keys[0], "V"); err != nil {
		t.Fatal(err)
	}
	sweep(keys[2])
	stays()
	if left, err := os.ReadDir(away); err != nil || len(left) != 1 || left[0].Name() != packageName(keys[2]) {
		t.Errorf("left in the spool: %v %v", left, err)
	}
	if err := errors.Join(os.Rename(dir, filepath.Join(base, "theirs")), os.Rename(away, dir)); err != nil {
		t.Fatal(err)
	}
	if p, err := s.spooled(keys[2], recorded); err != nil || p.Path != s.path(keys[2]) {
		t.Errorf("in its place again: %+v, %v", p, err)
	}
	if _, err := s.spooled(keys[3], recorded); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// A spool that is replaced while vaultd runs is no document's fault: nothing is sent of what lies in its place, whoever looks is told
// what to do, and all goes on when it is done.
func TestSpool_I4_I24_ReplacedWhileItRuns(t *testing.T) {
	for _, row := range []string{"PutBack", "Restarted", "Removed"} {
		t.Run(row, func(t *testing.T) {
			inHouse(t, nil, func(h *house) {
				h.lost.Store(true) // nothing is registered yet
				h.drop("Huber 88", "88", "one", false)
				h.pass()
				e := h.want("Huber 88 packaged")[0]
				dir, away := h.d.spool.dir, h.d.spool.dir+".away"
				if row == "Removed" {
					away = ""
				}
				stays := replaced(t, dir, away, strings.Repeat("z", int(e.Package.Size)), packageName(e.Key))
				h.lost.Store(false)
				h.drop("Otto 19", "19", "two", false)
				const what = "restart vaultd"
				told := func() bool {
					_, all := h.entries()
					p := h.d.State().Pauses
					return len(all) == 2 && all[0].State == ledger.Registered && strings.Contains(all[0].Cause.Text, what) &&
						all[1].State == ledger.Discovered && all[1].Cause.Code == "" && len(p) == 1 && p[0].Route == "spool" && strings.Contains(p[0].Cause.Text, what)
				}
				for range 60 { // the service is asked again at a time that nobody knows
					if time.Sleep(time.Minute); told() {
						break
					}
				}
				if !told() {
					_, all := h.entries()
					t.Errorf("entries %+v, pauses %+v", all, h.d.State().Pauses)
				}
				h.pass() // longer than the address is good for
				stays()
				if n := h.emu.Calls("upload"); n != 0 {
					t.Errorf("%d uploads", n)
				}
				if row == "PutBack" {
					h.must(errors.Join(os.RemoveAll(dir), os.Rename(away, dir)))
				} else {
					h.halt()
					h.must(os.Remove(filepath.Join(dir, packageName(e.Key))))
					h.again()
				}
				time.Sleep(6 * time.Hour)
				h.pass()
				h.want("Huber 88 archived", "Otto 19 archived")
				h.onceEach("88", "19")
				if p := h.pauses(); len(p) != 0 {
					t.Errorf("pauses %q", p)
				}
			})
		})
	}
}
