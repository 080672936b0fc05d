package catalog

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A search that would take for ever does not hold up the stop of vaultd, and is not looked up in the ledger instead.
func TestCatalog_I23_StoppingEndsASearch(t *testing.T) {
	w := newWorld(t, 31)
	w.goOn(50)
	w.inBubble(t, func(t *testing.T) {
		c := New(w.config())
		stop := runUntilMade(c)
		ended := make(chan error, 1)
		go func() {
			ended <- c.readRows(t.Context(), func(*sql.Rows) error { return nil }, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT count(*) FROM n")
		}()
		for c.reading.TryLock() { // until it reads
			c.reading.Unlock()
			runtime.Gosched()
		}
		stop()
		if err := <-ended; !errors.Is(err, errEnding) || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	if log := w.log.String(); strings.Contains(log, "ERROR") {
		t.Error(log)
	}
}

// A file of another user, which this one could not write, is moved away once: the folder is ours.
func TestCatalog_I26_AFileOfAnotherUserIsMovedAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can give a file to another user")
	}
	const me, other = 65534, 1
	for name, at := range map[string]string{"File": "", "Log": "-wal"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 32)
			w.goOn(20)
			w.inBubble(t, func(*testing.T) { runUntilMade(New(w.config()))() })
			path := filepath.Join(w.dir, FileName)
			if at != "" {
				if err := os.WriteFile(path+at, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for p := w.dir; p != os.TempDir(); p = filepath.Dir(p) {
				if err := os.Chmod(p, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.Chown(w.dir, me, me), os.Chown(path, me, me), os.Chown(path+at, other, other)); err != nil {
				t.Fatal(err)
			}
			moved := make(chan error)
			go func() { // as another user, on a thread of its own, which ends with this
				runtime.LockOSThread()
				if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, me, me, me); errno != 0 {
					moved <- errno
					return
				}
				_, err := New(w.config()).moveForeign()
				moved <- err
			}()
			if err := <-moved; reasonToRebuild(err) == nil {
				t.Error(err)
			}
			if _, err := os.Lstat(path + ".foreign-1" + at); err != nil {
				t.Error(err)
			}
		})
	}
}
