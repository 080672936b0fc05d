package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/spool"
	"vaultd/internal/test/kit"
)

// replaced puts a folder into the place of the spool in which a file of each name lies with that content, and returns a check that they all stay as
// they are. The spool itself is at away then; an empty away says that it is gone.
func replaced(t *testing.T, dir, away, content string, names ...string) (stays func()) {
	t.Helper()
	gone := os.RemoveAll
	if away != "" {
		gone = func(dir string) error { return os.Rename(dir, away) }
	}
	kit.Must(t, errors.Join(gone(dir), os.Mkdir(dir, 0o700)))
	for _, name := range names {
		kit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return func() {
		t.Helper()
		left, err := os.ReadDir(dir)
		kit.Check(t, err == nil && len(left) == len(names),
			"left in the other folder: %v (error %v), want %q", left, err, names)
		for _, name := range names {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != content {
				t.Errorf("%s in the other folder = %q (error %v), want %q", name, text, err, content)
			}
		}
	}
}

// A spool that is replaced while vaultd runs is no document's fault: nothing is sent of what lies in its place, whoever looks is told
// what to do, and all goes on when it is done.
func TestSpool_I4_I24_ReplacedWhileItRuns(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"PutBack", "Restarted", "Removed"} {
		t.Run(row, func(t *testing.T) {
			withDaemon(t, nil, func(h *testDaemon) {
				h.lost.Store(true) // nothing is registered yet
				h.drop("Huber 88", "88", "one", false)
				h.pass()
				e := h.want("Huber 88 packaged")[0]
				dir, away := filepath.Join(h.cfg.StateDir, "spool"), filepath.Join(h.cfg.StateDir, "spool.away")
				if row == "Removed" {
					away = ""
				}
				stays := replaced(t, dir, away, strings.Repeat("z", int(e.Package.Size)), spool.PackageName(e.Route, e.Key))
				h.lost.Store(false)
				h.drop("Otto 19", "19", "two", false)
				const what = "restart vaultd"
				told := func() bool {
					_, all := h.entries()
					p := h.d.State().Pauses
					return len(all) == 2 && all[0].State == ledger.Registered && strings.Contains(all[0].Cause.Text, what) &&
						all[1].State == ledger.Discovered && all[1].Cause.Code == "" && len(p) == 1 && p[0].Target.String() == "spool" && strings.Contains(p[0].Cause.Text, what)
				}
				for range 60 { // the service is asked again at a time that nobody knows
					if time.Sleep(time.Minute); told() {
						break
					}
				}
				if !told() {
					_, all := h.entries()
					t.Errorf("entries = %+v, pauses = %+v, want one of them to name the spool", all, h.d.State().Pauses)
				}
				h.pass() // longer than the address is good for
				stays()
				kit.Want(t, "uploads", h.emu.CountCalls("upload"), 0)
				if row == "PutBack" {
					h.must(errors.Join(os.RemoveAll(dir), os.Rename(away, dir)))
				} else {
					h.halt()
					h.must(os.Remove(filepath.Join(dir, spool.PackageName(e.Route, e.Key))))
					h.again()
				}
				time.Sleep(6 * time.Hour)
				h.pass()
				h.want("Huber 88 archived", "Otto 19 archived")
				h.onceEach("88", "19")
				kit.Want(t, "number of pauses", len(h.pauses()), 0)
			})
		})
	}
}
