package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
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
		err := <-ended
		kit.Check(t, errors.Is(err, errEnding) && errors.Is(err, context.Canceled), "err = %v, want error %v, error context.Canceled", err, errEnding)
	})
	kit.Lacks(t, "the log", w.log.String(), "ERROR")
}

// A file of another user, which this one could not write, is moved away once: the folder is ours.
func TestCatalog_I26_AFileOfAnotherUserIsMovedAway(t *testing.T) {
	if os.Geteuid() != 0 {
		kit.Missing(t, "root, to give a file to another user")
	}
	const me, other = 65534, 1
	kit.Rows(t, map[string]string{"File": "", "Log": "-wal"}, func(t *testing.T, at string) {
		w := newWorld(t, 32)
		w.goOn(20)
		w.inBubble(t, func(*testing.T) { runUntilMade(New(w.config()))() })
		path := filepath.Join(w.dir, FileName)
		if at != "" {
			kit.Must(t, os.WriteFile(path+at, nil, 0o600))
		}
		for p := w.dir; p != os.TempDir(); p = filepath.Dir(p) {
			kit.Must(t, os.Chmod(p, 0o755))
		}
		kit.Must(t, errors.Join(os.Chown(w.dir, me, me), os.Chown(path, me, me), os.Chown(path+at, other, other)))
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
		err := <-moved
		kit.Check(t, reasonToRebuild(err) != nil, "err = %v, want reasonToRebuild(err) other than nil", err)
		kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(path+".foreign-1"+at)), nil)
	})
}

// Reading ahead gives every row in order, ends with the first error of whoever has one, and leaves no goroutine.
func TestReadAhead_I23_InOrderUntilTheFirstError(t *testing.T) {
	walkFails, readFails, useFails := errors.New("walk"), errors.New("read"), errors.New("use")
	for name, c := range map[string]struct {
		entries, failsRead, failsUse int
		walked, want                 error
	}{
		"Empty": {0, -1, -1, nil, nil}, "OnePart": {rowsOfPart, -1, -1, nil, nil}, "SomeParts": {5*rowsOfPart + 1, -1, -1, nil, nil}, "WalkFails": {100, -1, -1, walkFails, walkFails},
		"ReadFails": {1000, 700, -1, nil, readFails}, "UseFails": {1000, -1, 3, nil, useFails}, "UseFailsBeforeRead": {1000, 900, 3, nil, useFails}, "UseFailsAtTheEnd": {100, -1, 99, nil, useFails},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // it fails where a goroutine is left
				used := 0
				err := readAhead(func(fn func(ledger.Entry) error) error {
					for i := range c.entries {
						if err := fn(ledger.Entry{Rev: uint32(i)}); err != nil {
							return err
						}
					}
					return c.walked
				}, func(e ledger.Entry) (r row, err error) {
					if int(e.Rev) == c.failsRead {
						return r, readFails
					}
					return row{Entry: e}, nil
				}, func(r row) error {
					if int(r.Rev) == c.failsUse {
						return useFails
					}
					kit.Want(t, fmt.Sprintf("%d comes after %d", r.Rev, used-1), int(r.Rev), used)
					used++
					return nil
				})
				kit.Check(t, errors.Is(err, c.want) && (c.want != nil || err == nil && used == c.entries),
					"%v after %d rows", err, used)
			})
		})
	}
}
